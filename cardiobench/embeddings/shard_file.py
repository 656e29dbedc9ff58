"""File of a shard: its bytes, their checksum, and its metadata."""

from functools import cache
from pathlib import Path

import pyarrow as pa
import xxhash


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


def metadata(table: pa.Table) -> dict[str, str]:
    """Return the metadata of a shard's table."""
    return {name.decode(): value.decode("utf-8", "replace") for name, value in (table.schema.metadata or {}).items()}
