"""File of a shard: its bytes, their checksum, and its metadata."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from cardiobench.core.file_state import FileState
from cardiobench.core.versions import component_version
from cardiobench.data.media import checks
from cardiobench.data.media.content import DIGEST_BYTES


def recording_table(
    ids: Sequence[str],
    fingerprints: Sequence[str],
    parts: Sequence[np.ndarray],
    dtype: np.dtype,
    hints: Sequence[int] | None = None,
    contents: Sequence[str] | None = None,
) -> pa.Table:
    """Return the table of a shard, one row per part of a recording.

    Args:
        ids: Recording ids.
        fingerprints: File fingerprints of the recordings.
        parts: Vectors (P, dim) of each recording's parts.
        dtype: Type of the stored numbers.
        hints: Hints of the recordings (`data.hints`); None leaves out the columns `hint` and `content`.
        contents: Digests of the recordings (`data.media.content`), empty if unknown.
    """
    lengths = [len(vectors) for vectors in parts]
    flat = np.ascontiguousarray(np.concatenate(parts), dtype=dtype)
    columns: dict[str, Any] = {
        "id": np.repeat(np.asarray(ids, dtype=object), lengths),
        "stamp": np.repeat(np.asarray(fingerprints, dtype=object), lengths),
        "part": np.concatenate([np.arange(n, dtype=np.int32) for n in lengths]),
    }
    if hints is not None:
        digests = [bytes.fromhex(one) or bytes(DIGEST_BYTES) for one in contents or [""] * len(lengths)]
        columns["hint"] = np.repeat(np.asarray(hints, dtype=np.uint64), lengths)
        columns["content"] = pa.array(digests, pa.binary(DIGEST_BYTES)).take(
            np.repeat(np.arange(len(lengths)), lengths)
        )
    columns["vector"] = pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])
    return pa.table(columns)


def boundaries(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Return the first row and the number of rows of each recording of a shard, both (n,)."""
    names = table["id"].combine_chunks()
    starts = np.flatnonzero(np.r_[True, pc.not_equal(names[1:], names[:-1])])
    return starts, np.diff(np.r_[starts, len(names)])


def to_bytes(table: pa.Table) -> bytes:
    """Return a table as an Arrow IPC file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@cache
def is_whole(shard: Path, state: FileState) -> bool:
    """Return whether a shard's bytes are unchanged since it was written; checked once per process and state of the file."""
    with pa.memory_map(str(shard)) as source:
        return shard.stem.rpartition("-")[2] == xxhash.xxh3_128_hexdigest(source.read_buffer())


def state_remarks(remarks: Mapping[str, Sequence[str]] | None) -> str:
    """Return remarks on the recordings of a shard as text for its metadata.

    Args:
        remarks: Mapping from the id of a remarked recording to the checks; None if the recordings were not checked.
    """
    return json.dumps(None if remarks is None else {"version": component_version(checks), "remarks": remarks})


def stated_remarks(stated: Mapping[str, str]) -> dict[str, tuple[str, ...]] | None:
    """Return the remarks in the metadata of a shard; None if its recordings were not checked, or by other checks."""
    said = json.loads(stated.get("remarks", "null"))
    if not said or said["version"] != component_version(checks):
        return None
    return {name: tuple(found) for name, found in said["remarks"].items()}


def metadata(table: pa.Table) -> dict[str, str]:
    """Return the metadata of a shard's table."""
    return {name.decode(): value.decode("utf-8", "replace") for name, value in (table.schema.metadata or {}).items()}
