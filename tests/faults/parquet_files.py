"""Hostile Parquet files: each is a table of a submission with one addition, another type, or another size than stated."""

import io
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq


def parquet(table: pa.Table, **options) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def with_column(table: pa.Table, name: str, value) -> pa.Table:
    return table.append_column(name, pa.array([value] * table.num_rows))


def repeated(table: pa.Table) -> pa.Table:
    names = [*table.column_names, table.column_names[0]]
    return pa.table([*table.columns, table.columns[0]], names=names)


def wide(table: pa.Table) -> pa.Table:
    more = pa.array([1] * table.num_rows)
    names = [f"c{number}" for number in range(2_000)]
    return pa.table([*table.columns, *(more for _ in names)], names=[*table.column_names, *names])


def other_type(table: pa.Table, values: pa.Array) -> pa.Table:
    return table.set_column(0, table.column_names[0], values)


def nested(table: pa.Table) -> pa.Table:
    return other_type(table, pa.array([[cell] for cell in table.column(0).to_pylist()]))


def as_bytes(table: pa.Table) -> pa.Table:
    return other_type(table, table.column(0).cast(pa.binary()))


def long_text(table: pa.Table) -> pa.Table:
    return other_type(table, pa.array(["x" * 50_000_000, *[""] * (table.num_rows - 1)]))


def tall(table: pa.Table) -> pa.Table:
    rows = 3_000_000
    return pa.table({name: pa.repeat(table[name][0], rows) for name in table.column_names[:3]})


def hollow(table: pa.Table) -> pa.Table:
    """Return fewer rows than the limit, which take 33 KB as a file and 59 MB in memory."""
    return pa.table({name: pa.repeat(table[name][0], 2_000_000) for name in table.column_names[:3]})


def in_field_metadata(table: pa.Table) -> pa.Table:
    fields = [one.with_metadata({"note": "x" * 1_000_000}) for one in table.schema]
    return table.cast(pa.schema(fields))


def variable_length(number: int, length: int = 0) -> bytes:
    """Return an integer as Thrift writes it, optionally with superfluous bytes."""
    value, found = number << 1, bytearray()
    while value > 127 or len(found) + 1 < length:
        found.append((value & 127) | 128)
        value >>= 7
    return bytes(found) + bytes([value])


def false_footer(table: pa.Table) -> bytes:
    """Return a long text whose footer states that the column is short."""
    content = parquet(long_text(table.slice(0, 1)), compression="zstd", write_statistics=False)
    size = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0).column(0).total_uncompressed_size
    stated = variable_length(size)
    assert stated in content
    return content.replace(stated, variable_length(100, len(stated)))


def delta_encoded(table: pa.Table) -> bytes:
    """Return texts that each repeat the start of the one before, so that a few bytes are any number of texts."""
    name = table.column_names[0]
    return parquet(table, use_dictionary=False, column_encoding={name: "DELTA_BYTE_ARRAY"})


HOSTILE: dict[str, Callable[[pa.Table], bytes]] = {
    "a column twice": lambda table: parquet(repeated(table)),
    "a column of labels": lambda table: parquet(with_column(table, "y_true", "sick")),
    "a column of names": lambda table: parquet(with_column(table, "patient_name", "Jane Roe")),
    "a blob": lambda table: parquet(with_column(table, "blob", b"x" * 1_000_000)),
    "2,000 columns": lambda table: parquet(wide(table)),
    "a list": lambda table: parquet(nested(table)),
    "bytes": lambda table: parquet(as_bytes(table)),
    "a long text": lambda table: parquet(long_text(table), compression="zstd"),
    "many rows": lambda table: parquet(tall(table), compression="zstd"),
    "many rows in few bytes": lambda table: parquet(hollow(table), compression="zstd"),
    "a token in the metadata": lambda table: parquet(table.replace_schema_metadata({"token": "hf_" + "a" * 30})),
    "a blob in the pandas metadata": lambda table: parquet(table.replace_schema_metadata({"pandas": "x" * 1_000_000})),
    "a blob in the metadata of a field": lambda table: parquet(in_field_metadata(table)),
    "a footer that states other sizes": false_footer,
    "texts that repeat the one before": delta_encoded,
    "no columns": lambda table: parquet(table.select([])),
    "a blob behind the table": lambda table: parquet(table)[:4] + b"x" * 1_000_000 + parquet(table)[4:],
    "no Parquet": lambda table: b"PAR1" + b"x" * 1_000 + b"PAR1",
    "nothing": lambda table: b"",
}
"""Mapping from case to a function that makes it of an honest table, whose first column has texts."""
