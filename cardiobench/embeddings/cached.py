"""Management of stored embeddings: listing, size, verification, deletion and export."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadConfig, BadData, MissingData, first_n
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.embeddings.vector_files import FORMATS, POOLING, POOLINGS, write_vectors

EMBEDDINGS, TOKENS = KINDS = ("embeddings", "tokens")
"""Folders of a cache: vectors of whole recordings, and tokens of single frames."""
KEY_FILE, SHARDS, DAMAGED = "key.json", "*.arrow", "*.arrow.damaged"


@dataclass(frozen=True)
class CachedStore:
    """One store of a cache.

    Attributes:
        folder: `<cache>/<kind>/<org>__<model>/<dataset>/<key>`.
        kind: One of `KINDS`.
    """

    folder: Path
    kind: str

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Everything that the vectors depend on; empty if the key file is missing or damaged."""
        try:
            facts = json.loads((self.folder / KEY_FILE).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return facts if isinstance(facts, dict) else {}

    @property
    def key(self) -> str:
        """Digest of these facts, which is also the name of the folder."""
        return self.folder.name

    @property
    def model(self) -> str:
        """Name of the model; for a local one the name under which it was encoded first."""
        name = self.folder.parents[1].name
        return str(self.facts.get("model") or (name if self.facts.get("local") else name.replace("__", "/")))

    @property
    def dataset(self) -> str:
        """Name of the dataset."""
        return self.folder.parent.name

    @property
    def about(self) -> str:
        """Facts that distinguish the store from others of the same model and dataset."""
        given = ["from elsewhere"] if "given" in self.facts else []
        said = [f"{name}: {self.facts[name]}" for name in ("change", "generation", "overlays") if self.facts.get(name)]
        return "; ".join([*([self.kind] if self.kind != EMBEDDINGS else []), *given, *said])

    @property
    def files(self) -> list[Path]:
        """All files of the store, including those that were set aside."""
        return sorted(path for path in self.folder.iterdir() if path.is_file() or path.is_symlink())

    @property
    def shards(self) -> list[Path]:
        """Shards, oldest first."""
        return sorted(self.folder.glob(SHARDS))

    @property
    def size(self) -> int:
        """Size in bytes."""
        return sum(path.lstat().st_size for path in self.files)

    @cached_property
    def store(self) -> EmbeddingStore:
        """The store, opened for reading.

        Raises:
            BadData: The key file is missing, or does not belong to the folder.
        """
        root = self.folder.parents[2]
        store = EmbeddingStore(root, self.model, self.dataset, self.facts)
        if store.key != self.key:
            raise BadData(
                f"{self.folder / KEY_FILE} is missing, damaged or of another store. Delete the folder; its recordings are then encoded "
                "again."
            )
        return store

    def stamps(self) -> dict[str, str]:
        """Return a mapping from the id of each recording to the fingerprint of its file when it was last encoded."""
        found: dict[str, str] = {}
        for shard in self.shards:
            if (table := self.store.open_shard(shard)) is not None:
                found |= zip(table["id"].to_pylist(), table["stamp"].to_pylist(), strict=True)
        return found

    def pooling(self) -> str:
        """Return the pooling of the vectors of a recording; empty if the shards do not store it."""
        said: set[str] = set()
        for shard in self.shards:
            if (table := self.store.open_shard(shard)) is not None:
                said.add((table.schema.metadata or {}).get(b"pooling", b"").decode())
        return said.pop() if len(said) == 1 else ""

    def problems(self) -> list[str]:
        """Return sentences about problems of the store; damaged shards are set aside."""
        found = [f"{path.name} was damaged and set aside" for path in self.folder.glob(DAMAGED)]
        try:
            for shard in self.shards:
                table = self.store.open_shard(shard)
                if table is None:
                    found.append(f"{shard.name} is damaged: set aside, its recordings are encoded again")
                elif not _is_finite(table["vector"].combine_chunks()):
                    found.append(f"{shard.name} holds NaN or infinity")
        except BadData as error:
            found.append(str(error))
        return found

    def delete(self) -> None:
        """Delete the files of the store, and folders that become empty."""
        for path in self.files:
            path.unlink(missing_ok=True)
        for folder in (self.folder, *self.folder.parents[:2]):
            if any(folder.iterdir()):
                return
            folder.rmdir()


def _is_finite(column: Any) -> bool:
    return bool(np.isfinite(column.flatten().to_numpy()).all())


def find_stores(cache: Path, model: str = "", dataset: str = "", key: str = "") -> list[CachedStore]:
    """Return the stores of a cache, by model and dataset.

    Args:
        cache: Folder of the cache.
        model: Name of a model, or of its folder; empty for all.
        dataset: Name of a dataset; empty for all.
        key: Start of a key; empty for all.
    """
    found = [CachedStore(folder, kind) for kind in KINDS for folder in _folders(cache / kind)]
    return [
        one
        for one in sorted(found, key=lambda one: (one.model, one.dataset, one.kind, one.key))
        if (not model or model in (one.model, one.folder.parents[1].name))
        and (not dataset or dataset == one.dataset)
        and one.key.startswith(key)
    ]


def _folders(root: Path) -> Iterator[Path]:
    """Yield the folders of stores, without following links."""
    for folder in sorted(root.glob("*/*/*")):
        inside = not any(one.is_symlink() for one in (folder, *folder.parents[:2]))
        if inside and folder.is_dir() and (any(folder.glob(SHARDS)) or (folder / KEY_FILE).is_file()):
            yield folder


def export_stores(stores: Sequence[CachedStore], path: Path, pooling: str = "") -> tuple[int, str]:
    """Write the embeddings of a model to a file for `--embeddings`.

    Args:
        stores: Stores of one model, one per dataset.
        path: File that ends in .parquet, .npz or .csv.
        pooling: Pooling of the vectors of a recording; empty uses the pooling stored with the vectors.

    Returns:
        The number of recordings, and the pooling; empty if unknown.

    Raises:
        MissingData: There are no stores, or they are empty.
        BadConfig: The stores have the same dataset, different models or different widths, or the format is unknown.
    """
    if path.suffix.lower() not in FORMATS:
        raise BadConfig(f"{path.name}: unknown format of embeddings. End the name with {', '.join(FORMATS)}.")
    stores = _one_each(stores)
    keys: list[tuple[str, str]] = []
    vectors, lengths = [], []
    for one in stores:
        stamps = dict(sorted(one.stamps().items()))
        embeddings = one.store.load(list(stamps), list(stamps.values()))
        keys += [(one.dataset, name) for name in stamps]
        vectors.append(embeddings.vectors)
        lengths.append(np.diff(embeddings.offsets))
    shapes = {(str(block.dtype), block.shape[1]) for block in vectors if len(block)}
    if len(shapes) != 1:
        what = "; ".join(f"{width} numbers of type {kind}" for kind, width in sorted(shapes)) or "nothing"
        raise BadConfig(
            f"the stores hold {what}, but all vectors of a file have one width. Export one dataset at a time."
        )
    said = {one.pooling() for one in stores}
    chosen = pooling or (said.pop() if len(said) == 1 else "")
    if chosen not in ("", *POOLINGS):
        raise BadConfig(f"no pooling '{chosen}'. Give {' or '.join(POOLINGS)}.")
    note = {
        "model": stores[0].model,
        "keys": {one.dataset: one.key for one in stores},
        **({POOLING: chosen} if chosen else {}),
    }
    write_vectors(path, keys, np.r_[0, np.cumsum(np.concatenate(lengths))], np.concatenate(vectors), note)
    return len(keys), chosen


def _one_each(stores: Sequence[CachedStore]) -> list[CachedStore]:
    """Return the stores without pooling, one for each dataset of one model."""
    plain = [one for one in stores if one.kind == EMBEDDINGS and one.shards and "change" not in one.facts]
    if not plain:
        raise MissingData(
            "there are no embeddings of that model and dataset. `cardiobench cache list` shows what is stored."
        )
    models = sorted({one.model for one in plain})
    if len(models) > 1:
        raise BadConfig(f"there are embeddings of {len(models)} models: {first_n(models)}. Choose one with --model.")
    several = [name for name, count in Counter(one.dataset for one in plain).items() if count > 1]
    if several:
        keys = ", ".join(f"{one.key} (of {_day(one)})" for one in plain if one.dataset == several[0])
        raise BadConfig(f"{models[0]} has several embeddings of {several[0]}: {keys}. Choose one with --key.")
    return plain


def _day(store: CachedStore) -> str:
    return f"{pd.Timestamp(store.shards[-1].stat().st_mtime, unit='s'):%Y-%m-%d %H:%M}"


def describe(store: CachedStore) -> dict[str, Any]:
    """Return the row of a store in a list, with its recordings counted from the shards."""
    try:
        recordings: int | None = len(store.stamps())
    except BadData:
        recordings = None
    return {
        "model": store.model,
        "dataset": store.dataset,
        "key": store.key,
        "recordings": recordings,
        "bytes": store.size,
        "written": _day(store) if store.shards else "",
        "what": store.about,
        "folder": str(store.folder),
    }
