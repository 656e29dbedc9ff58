"""Embeddings on disk, under a key made of everything that could change them, found by sample id.

Layout: `<root>/<org>__<model>/<dataset>/<key>/` holds `key.json` and any number of `*.arrow` shards (Arrow IPC files)
with the columns id, stamp, part and vector: one line a part of a recording. A shard is written under another name
and then renamed, so a shard that is there is whole; two runs at once write different shards and disturb nobody.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiobench.core.errors import BadData, UnwritableOutput
from cardiobench.results.paths import folder_name

DEVICE = b"device"  # in a shard's metadata; no part of the key, since it is not meant to change a value


@dataclass(frozen=True)
class Embeddings:
    """Vectors of some recordings, in the order asked for.

    Attributes:
        ids: recordings.
        vectors: float32, (all parts of all recordings, dim).
        offsets: (len(ids) + 1,); the parts of recording i are `vectors[offsets[i]:offsets[i + 1]]`.
        devices: that they were computed on, as far as it is known.
    """

    ids: tuple[str, ...]
    vectors: np.ndarray
    offsets: np.ndarray
    devices: tuple[str, ...] = ()

    def parts(self, number: int) -> np.ndarray:
        """Vectors (P, dim) of one recording."""
        return self.vectors[self.offsets[number] : self.offsets[number + 1]]

    def pooled(self, pooling: str) -> np.ndarray:
        """One float64 vector a recording, (n, dim): `mean` of the parts, or `mean_l2`: unit parts, mean, unit length again."""
        vectors = self.vectors.astype(np.float64)
        if pooling == "mean_l2":
            vectors = l2_normalize(vectors)
        counts = np.diff(self.offsets)[:, None]
        pooled = np.add.reduceat(vectors, self.offsets[:-1], axis=0) / counts
        return l2_normalize(pooled) if pooling == "mean_l2" else pooled


def l2_normalize(vectors: np.ndarray) -> np.ndarray:
    """Vectors scaled to length one; a zero vector stays zero."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(length > 0, length, 1.0)


class EmbeddingStore:
    """The embeddings of one model on one dataset."""

    def __init__(self, root: Path, model: str, dataset: str, key: Mapping[str, Any]):
        text = json.dumps(key, sort_keys=True, indent=2, ensure_ascii=False)
        self.key = hashlib.sha256(text.encode()).hexdigest()[:12]
        self.folder = Path(root) / folder_name(model) / dataset / self.key
        self._text = text

    def stored(self) -> set[tuple[str, str]]:
        """(id, stamp) of every recording that is stored."""
        found: set[tuple[str, str]] = set()
        for shard in self._shards():
            table = _open(shard)
            found.update(zip(table["id"].to_pylist(), table["stamp"].to_pylist(), strict=True))
        return found

    def append(
        self,
        ids: Sequence[str],
        stamps: Sequence[str],
        parts: Sequence[np.ndarray],
        *,
        rank: int = 0,
        device: str = "",
    ) -> Path:
        """Write one shard: for each recording its id, its stamp and its parts' vectors (P, dim); and the device's name."""
        lengths = [len(vectors) for vectors in parts]
        flat = np.ascontiguousarray(np.concatenate(parts), dtype=np.float32)
        table = pa.table(
            {
                "id": np.repeat(np.asarray(ids, dtype=object), lengths),
                "stamp": np.repeat(np.asarray(stamps, dtype=object), lengths),
                "part": np.concatenate([np.arange(n, dtype=np.int32) for n in lengths]),
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1]),
            }
        ).replace_schema_metadata({DEVICE: device})
        name = f"{time.time_ns():020d}-rank{rank}-{os.getpid()}.arrow"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            note = self.folder / "key.json"
            if not note.is_file():
                _write_whole(note, lambda path: path.write_text(self._text, encoding="utf-8"))
            _write_whole(self.folder / name, lambda path: _write_table(path, table))
        except OSError as error:
            raise UnwritableOutput(
                f"embeddings cannot be written to {self.folder} ({error.strerror or error}). "
                "Free the disk or choose another folder with --cache-dir; what is written already is kept."
            ) from None
        return self.folder / name

    def load(self, ids: Sequence[str], stamps: Sequence[str]) -> Embeddings:
        """The vectors of these recordings in this order; raises `BadData` naming those that are not stored."""
        wanted = dict(zip(ids, stamps, strict=True))
        found: dict[str, np.ndarray] = {}
        devices: set[str] = set()
        for shard in self._shards():
            table = _open(shard)
            keep = pc.is_in(table["id"], pa.array([i for i in wanted if i not in found], type=pa.string()))
            table = table.filter(keep)
            if not table.num_rows:
                continue
            column = table["vector"].combine_chunks()
            vectors = column.flatten().to_numpy().reshape(len(column), -1)
            names = np.asarray(table["id"].to_pylist(), dtype=object)
            marks = table["stamp"].to_pylist()
            starts = np.flatnonzero(np.r_[True, names[1:] != names[:-1]])
            for start, stop in zip(starts, [*starts[1:], len(names)], strict=True):
                name = names[start]
                if marks[start] == wanted[name] and name not in found:
                    found[name] = vectors[start:stop]
                    devices.add((table.schema.metadata or {}).get(DEVICE, b"").decode())
        absent = [name for name in wanted if name not in found]
        if absent:
            raise BadData(
                f"{len(absent)} of {len(wanted)} recordings have no embedding in {self.folder}: {', '.join(absent[:5])}. Run the line again."
            )
        chosen = [found[name] for name in ids]
        offsets = np.r_[0, np.cumsum([len(vectors) for vectors in chosen])]
        vectors = np.concatenate(chosen) if chosen else np.empty((0, 0), np.float32)
        return Embeddings(tuple(ids), vectors, offsets, tuple(sorted(devices - {""})))

    def _shards(self) -> list[Path]:
        return sorted(self.folder.glob("*.arrow"))


def _write_table(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _write_whole(path: Path, write) -> None:
    """Write under a name of this process, then rename: nobody ever sees half a file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _open(shard: Path) -> pa.Table:
    try:
        with pa.memory_map(str(shard)) as source:
            return pa.ipc.open_file(source).read_all()
    except pa.ArrowInvalid as error:
        raise BadData(f"{shard} is not a whole Arrow file ({error}). Delete it and run the line again.") from None


def missing(have: set[tuple[str, str]], ids: Iterable[str], stamps: Iterable[str]) -> list[int]:
    """Positions of the recordings that are not stored yet, or whose file has changed since."""
    return [number for number, pair in enumerate(zip(ids, stamps, strict=True)) if pair not in have]
