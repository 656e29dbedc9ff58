"""File of a shard: its bytes, their checksum, and its metadata."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pyarrow as pa
import xxhash

from cardiobench.core.versions import component_version
from cardiobench.data.media import checks


def to_bytes(table: pa.Table) -> bytes:
    """Return a table as an Arrow IPC file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@cache
def is_whole(shard: Path, state: tuple[int, ...]) -> bool:
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
