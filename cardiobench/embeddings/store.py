"""Embeddings on disk, under a key made of everything that could change them, found by sample id.

Layout: `<root>/<org>__<model>/<dataset>/<key>/` holds `key.json` and any number of `*.arrow` shards (Arrow IPC files)
with the columns id, stamp, part, hint, content (the digest of the recording) and vector, one row per part of a
recording; shards of earlier versions, and of given vectors, have neither hint nor content. Vectors are float32, or float16 if the key
says so; a grid of tokens is stored as one long vector. A shard is one record batch with the recordings encoded between
two writes. It is written under another name and then renamed, so existing shards are complete; concurrent runs write
different shards. Its name ends in a digest of its bytes, which is checked before reading. A damaged shard is set aside,
and only its recordings are encoded again. Its metadata states the key and the width of the vectors, which are compared
on reading, so a shard copied from another model is refused. The metadata also name device and libraries, which should
not affect the values.
"""

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from cardiobench.core.errors import BadData, DiskFull, UnwritableOutput, first_n
from cardiobench.core.file_state import file_state
from cardiobench.core.io import write_atomic
from cardiobench.core.libraries import library_versions, merged
from cardiobench.core.memory import memory_limit, release_freed_memory
from cardiobench.embeddings.positions import Positions
from cardiobench.embeddings.shard_file import (
    boundaries,
    is_whole,
    metadata,
    recording_table,
    state_remarks,
    stated_remarks,
    to_bytes,
)
from cardiobench.embeddings.vectors import Embeddings
from cardiobench.results.cost import Cost, cost_of
from cardiobench.results.paths import folder_name

MEMORY_SHARE = 0.5  # Fraction of available memory above which embeddings are mapped from a file.
PROCESSES_HERE = (
    "LOCAL_WORLD_SIZE"  # Environment variable of launchers: number of processes that share this machine's memory.
)


@dataclass(frozen=True)
class _Match:
    """Requested recordings that are stored in one shard.

    Attributes:
        shard: The file.
        positions: Positions among the requested recordings, (k,).
        starts: First row of each in the shard, (k,).
        lengths: Number of rows of each, (k,).
    """

    shard: Path
    positions: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray


class EmbeddingStore:
    """The embeddings of one model on one dataset.

    Attributes:
        key: Digest of everything that may change them.
        generation: Number of earlier stores with this key that the model no longer reproduces.
        damaged: Shards that were set aside.
        library_sets: Versions of the libraries that computed the loaded vectors.
        costs: Mapping from shard to cost that it states; empty if it states none.
    """

    def __init__(
        self,
        root: Path,
        model: str,
        dataset: str,
        key: Mapping[str, Any],
        *,
        generation: int = 0,
        media: str = "",
        pooling: str = "",
    ):
        """Locate the store without reading or writing.

        Args:
            root: Folder of all stores.
            model: Name of the model.
            dataset: Name of the dataset.
            key: Everything that may change the embeddings, as JSON values. With `local`, a store under another name of the
                model is used if there is none under this one.
            generation: Number of earlier stores with this key that are no longer used.
            media: Column of the recordings, whose decoders are recorded in the shards.
            pooling: Pooling of the vectors of a recording, recorded in the shards for export.
        """
        full = {**key, "generation": generation} if generation else key
        text = json.dumps(full, sort_keys=True, indent=2, ensure_ascii=False)
        self.key = hashlib.sha256(text.encode()).hexdigest()[:12]
        self.folder = Path(root) / folder_name(model) / dataset / self.key
        if key.get("local") and not self.folder.exists():  # The model may have had another name.
            self.folder = min(Path(root).glob(f"*/{dataset}/{self.key}"), default=self.folder)
        self.generation, self.media, self.pooling = generation, media, pooling
        self.damaged: list[Path] = []
        self.library_sets: list[dict[str, str]] = []
        self.costs: dict[Path, Mapping[str, Any]] = {}
        self._loaded = (0, 0)  # Recordings and their bytes.
        self._of = f"{model} on {dataset}"
        self._first: tuple[Path, int] | None = None  # A shard with the width of its vectors.
        self.dtype = np.dtype(key.get("dtype", "float32"))
        self._text = text

    def missing(self, ids: Sequence[str], fingerprints: Sequence[str]) -> np.ndarray:
        """Return the positions (m,), ascending, of the recordings that are not stored, or whose file has changed.

        Args:
            ids: Unique recording ids.
            fingerprints: File fingerprints of the recordings.
        """
        absent = np.ones(len(ids), dtype=bool)
        for match in self._matches(ids, fingerprints):
            absent[match.positions] = False
        return np.flatnonzero(absent)

    def append(
        self,
        ids: Sequence[str],
        fingerprints: Sequence[str],
        parts: Sequence[np.ndarray],
        *,
        hints: Sequence[int] | None = None,
        contents: Sequence[str] | None = None,
        remarks: Mapping[str, Sequence[str]] | None = None,
        rank: int = 0,
        device: str = "",
        libraries: Mapping[str, str] | None = None,
        cost: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write one shard.

        Args:
            ids: Recording ids.
            fingerprints: File fingerprints of the recordings.
            parts: Vectors (P, dim) of each recording's parts.
            hints: Hints of the recordings; None for vectors that do not depend on their files.
            contents: Digests of the bytes from which the recordings were read, empty if unknown.
            remarks: Mapping from the id of a remarked recording to the checks; None if the recordings were not checked.
            rank: Rank of this process, used in the shard's name.
            device: Device on which the vectors were computed.
            libraries: Mapping from library to version that computed the vectors; by default those of this process.
            cost: Cost of encoding these recordings (`CostMeter.facts`); None if not measured.

        Returns:
            Path of the shard.

        Raises:
            UnwritableOutput: The disk is full or read-only; shards written before are kept.
        """
        content = self.shard(
            ids,
            fingerprints,
            parts,
            hints=hints,
            contents=contents,
            remarks=remarks,
            device=device,
            libraries=libraries,
            cost=cost,
        )
        name = f"{time.time_ns():020d}-rank{rank}-{os.getpid()}-{xxhash.xxh3_128_hexdigest(content)}.arrow"
        try:
            if not (self.folder / "key.json").is_file():
                write_atomic(self.folder / "key.json", lambda path: path.write_text(self._text, encoding="utf-8"))
            return write_atomic(self.folder / name, lambda path: path.write_bytes(content))
        except UnwritableOutput as error:
            raise type(error)(
                f"embeddings cannot be written to {self.folder}. {error.args[0]} "
                "Free the disk or choose another folder with --cache-dir; embeddings already written are kept."
            ) from error

    def shard(
        self,
        ids: Sequence[str],
        fingerprints: Sequence[str],
        parts: Sequence[np.ndarray],
        *,
        hints: Sequence[int] | None = None,
        contents: Sequence[str] | None = None,
        remarks: Mapping[str, Sequence[str]] | None = None,
        device: str = "",
        libraries: Mapping[str, str] | None = None,
        cost: Mapping[str, Any] | None = None,
    ) -> bytes:
        """Return the content of a shard without writing it. The arguments are those of `append`."""
        table = recording_table(ids, fingerprints, parts, self.dtype, hints, contents)
        table = table.replace_schema_metadata(
            {
                "key": self.key,
                "of": self._of,
                "width": str(table.schema.field("vector").type.list_size),
                "device": device,
                "pooling": self.pooling,
                "libraries": json.dumps(library_versions(self.media) if libraries is None else libraries),
                "cost": json.dumps(dict(cost or {})),
                "remarks": state_remarks(remarks),
            }
        )
        return to_bytes(table)

    def load(self, ids: Sequence[str], fingerprints: Sequence[str]) -> Embeddings:
        """Read the vectors of some recordings into one read-only array, reading each shard once.

        Args:
            ids: Unique recording ids; the vectors are returned in this order.
            fingerprints: File fingerprints of the recordings.

        Raises:
            BadData: Some recordings are not stored; the message names the first ones.
        """
        matches = list(self._matches(ids, fingerprints))
        lengths = np.zeros(len(ids), dtype=np.int64)
        for match in matches:
            lengths[match.positions] = match.lengths
        if not lengths.all():
            absent = np.asarray(ids, dtype=object)[lengths == 0]
            raise BadData(
                f"{len(absent)} of {len(lengths)} recordings have no embedding in {self.folder}: "
                f"{first_n(absent)}. Run the same command again."
            )
        release_freed_memory()
        offsets = np.r_[0, np.cumsum(lengths)]
        vectors = np.empty((0, 0), dtype=self.dtype)
        devices: set[str] = set()
        libraries: list[dict[str, str]] = []
        costs: dict[Path, Mapping[str, Any]] = {}
        checked, remarks = 0, dict[str, tuple[str, ...]]()
        for match in matches:
            table = self.open_shard(match.shard)
            if table is None:
                raise BadData(f"{match.shard} was damaged while it was read. Run the same command again.")
            stated = metadata(table)
            devices.add(stated["device"])
            libraries.append(json.loads(stated["libraries"]))
            costs[match.shard] = json.loads(stated.get("cost", "{}"))  # Shards of older versions do not state it.
            if (remarked := stated_remarks(stated)) is not None:
                checked += len(match.starts)
                remarks |= _chosen(remarked, table, match.starts)
            column = table["vector"].combine_chunks()
            stored = column.flatten().to_numpy().reshape(len(column), -1)
            if not vectors.size:
                vectors = _allocate((int(offsets[-1]), stored.shape[1]), self.dtype, self.folder)
            step = np.arange(match.lengths.sum()) - np.repeat(np.cumsum(match.lengths) - match.lengths, match.lengths)
            source = np.repeat(match.starts, match.lengths) + step
            target = np.repeat(offsets[match.positions], match.lengths) + step
            vectors[_as_slice(target)] = stored[_as_slice(source)]
        vectors.flags.writeable = False
        self.costs |= costs
        self._loaded = (self._loaded[0] + len(ids), self._loaded[1] + vectors.nbytes)
        self.library_sets += [one for one in libraries if one not in self.library_sets]
        return Embeddings(
            vectors, offsets, tuple(sorted(devices - {""})), merged(libraries), tuple(costs.values()), checked, remarks
        )

    @property
    def cost(self) -> Cost | None:
        """Cost of encoding the loaded vectors; None before the first load."""
        count, size = self._loaded
        return cost_of(tuple(self.costs.values()), self._first[1], size / count) if count and self._first else None

    def agrees_with(self, libraries: Mapping[str, str]) -> bool:
        """Return whether some shard was computed with these versions of the libraries that it states."""
        tables = (self.open_shard(shard) for shard in sorted(self.folder.glob("*.arrow")))
        sets = (json.loads(metadata(table)["libraries"]) for table in tables if table is not None)
        return any(all(libraries.get(name, found) == found for name, found in one.items()) for one in sets)

    def open_shard(self, shard: Path) -> pa.Table | None:
        """Return a shard's table; None if it is damaged and was set aside, by this or another process."""
        try:
            state = file_state(shard)
            if state.size and shard.is_file() and is_whole(shard, state):
                with pa.memory_map(str(shard)) as source:
                    table = pa.ipc.open_file(source).read_all()
                self._check(shard, table)
                return table
            self.damaged.append(shard.rename(shard.with_name(f"{shard.name}.damaged")))
        except FileNotFoundError:
            pass
        return None

    def _check(self, shard: Path, table: pa.Table) -> None:
        """Refuse a shard written for another store.

        Raises:
            BadData: The key, data type or vector width differs.
        """
        stated = metadata(table)
        remedy = "Move it back to where it came from, or delete it: its recordings are then encoded again."
        if stated.get("key") != self.key:
            found = (
                f"key {stated['key']}, {stated.get('of')}" if "key" in stated else "no key, as those of older versions"
            )
            raise BadData(
                f"{shard} is a shard of other embeddings: {found}; expected key {self.key}, {self._of}. {remedy}"
            )
        column = table.schema.field("vector").type
        if column.value_type != pa.from_numpy_dtype(self.dtype) or str(column.list_size) != stated["width"]:
            found = f"{column.list_size} numbers of type {column.value_type}"
            raise BadData(f"{shard} has {found} per vector; expected {stated['width']} of type {self.dtype}. {remedy}")
        first, width = self._first = self._first or (shard, column.list_size)
        if column.list_size != width:
            raise BadData(
                f"{shard} has {column.list_size} numbers per vector, but {first.name} has {width}. Delete the file whose "
                "width is not the model's: its recordings are then encoded again."
            )

    def _matches(self, ids: Sequence[str], fingerprints: Sequence[str]) -> Iterator[_Match]:
        """Yield the locations of the recordings, each at the first one with the file's fingerprint."""
        wanted, marks = Positions(ids), pa.array(fingerprints, pa.string())
        left = np.ones(len(marks), dtype=bool)
        for shard in sorted(self.folder.glob("*.arrow")):
            if not left.any():
                return
            table = self.open_shard(shard)
            if table is None:
                continue
            starts, lengths = boundaries(table)
            positions = wanted.find(table["id"].combine_chunks().take(starts))
            good = positions >= 0
            same = pc.equal(marks.take(positions[good]), table["stamp"].take(starts[good]))
            good[good] = left[positions[good]] & np.asarray(same)
            positions, first = np.unique(positions[good], return_index=True)
            if len(positions):
                left[positions] = False
                yield _Match(shard, positions, starts[good][first], lengths[good][first])


def _chosen(remarks: Mapping[str, tuple[str, ...]], table: pa.Table, starts: np.ndarray) -> dict[str, tuple[str, ...]]:
    """Return the remarks on the recordings that start at some rows of a shard."""
    if not remarks:
        return {}
    return {name: remarks[name] for name in table["id"].combine_chunks().take(starts).to_pylist() if name in remarks}


def _as_slice(positions: np.ndarray) -> slice | np.ndarray:
    """Return consecutive positions as a slice, which is read without a copy; other positions unchanged."""
    follow = len(positions) and (np.diff(positions) == 1).all()
    return slice(positions[0], positions[-1] + 1) if follow else positions


def _allocate(shape: tuple[int, int], dtype: np.dtype, folder: Path) -> np.ndarray:
    """Return an empty matrix, mapped from an unnamed file in `folder` if it would fill half of this process's memory."""
    memory = memory_limit() // int(os.environ.get(PROCESSES_HERE) or 1)
    size = shape[0] * shape[1] * dtype.itemsize
    if size <= MEMORY_SHARE * memory:
        return np.empty(shape, dtype=dtype)
    with tempfile.TemporaryFile(dir=folder) as file:  # The mapping keeps the file until the last array is released.
        if hasattr(os, "posix_fallocate"):  # Missing on macOS.
            # Allocated in advance: on a full disk, a later write to a mapped page would kill the process without a
            # message.
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError as error:
                raise DiskFull(
                    f"{size / 1e9:.3g} GB of embeddings cannot be laid out in {folder}: {error.strerror}. Free that disk, or "
                    "choose another folder with --cache-dir."
                ) from error
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape)
