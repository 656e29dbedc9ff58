"""Read Parquet files of others within limits that are checked before anything is decoded.

Every Parquet file of a results folder, of a dataset of results or of a submission is read here. Files of prepared
recordings are checked here before the library `datasets` reads them, and so are tables that the user names. Texts in
JSON are read by `cardiobench.core.io.parse_json`.
"""

import mmap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from cardiobench.core.errors import BadData, first_n, one_line
from cardiobench.core.parquet_pages import BY_DICTIONARY, PLAIN_ENCODINGS, Chunk, Content, Page, column_chunks, pages

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MOST_ROWS = 2_000_000
"""Maximum number of rows; no release has as many units."""
MOST_CELLS = 50_000_000
"""Maximum number of rows times columns."""
MOST_BYTES = 1 << 29
"""Maximum size of a decoded table in bytes."""
ALWAYS_ALLOWED = 1 << 26
"""Size of a decoded table in bytes that a file of any size may have."""
MOST_GROWTH = 1000
"""Maximum size of a decoded table, as a multiple of the size of its file; distinct ids alone prevent a larger one."""
ROWS_PER_BYTE = 10
"""Maximum number of rows for each byte of a file with more than 100,000 rows; numbered ids need 0.15 bytes each."""
MOST_COLUMNS = 1000
LONGEST_CELL = 100_000
"""Maximum mean size of a cell in bytes in a table that the user names."""
IGNORED = (b"pandas", b"ARROW:schema")
"""Metadata keys that writers add; neither their types nor their index are used."""
_FOOTER = 2_000
"""Bytes that the footer may have, and again for each column chunk, beside names and statistics."""
_STATISTIC = 4_096
"""Writers leave out the statistics of longer values."""
_ROWS_PER_GROUP = 1_000
_FEW_ROWS = 100_000
_LONGEST_NAME = 300
_NUMBER, _PLACE = 8, 4
"""Bytes of a number or of a reference to a Python object, and of a place in a dictionary."""
_COMPRESSIONS = ("SNAPPY", "ZSTD", "GZIP", "UNCOMPRESSED")
_OF_DATASETS = (b"huggingface", b"content_defined_chunking")
"""Metadata keys of the library `datasets`, of which the first names the types of columns."""
_LISTS = (".list.element", ".list.item")

_OF_BYTES = ("text", "bytes")
"""Kinds of stored columns that are read as places in a dictionary."""
Kind = Literal["text", "number", "count", "flag", "any", "frame"]


@dataclass(frozen=True)
class ForeignColumn:
    """Allowed content of a column.

    Attributes:
        kind: `text`, `number` (float or integer), `count` (integer), `flag` (boolean), `any` of these, or `frame`, the
            answer to a frame: bytes such as those of a picture, or a list of numbers.
        longest: Maximum length of a text in bytes of UTF-8, or of bytes.
        each: Maximum length of the list in each row, which is the same for all rows; 0 for one value per row.
    """

    kind: Kind
    longest: int = 300
    each: int = 0


@dataclass(frozen=True)
class TableFormat:
    """Allowed content of a Parquet file.

    Attributes:
        columns: Mapping from name to content.
        required: Columns that the file must have.
        lists: Mapping from prefix of a name to content of columns of lists.
        others: Content of all other columns; None to refuse them.
        metadata: Metadata keys that are read, besides `IGNORED`.
        rows: Maximum number of rows.
        repeated: Text columns that are returned dictionary-encoded, because rows repeat long texts.
    """

    columns: Mapping[str, ForeignColumn]
    required: Collection[str] = ()
    lists: Mapping[str, ForeignColumn] = field(default_factory=dict)
    others: ForeignColumn | None = None
    metadata: Collection[bytes] = ()
    rows: int = MOST_ROWS
    repeated: Collection[str] = field(default=())

    def column(self, name: str) -> ForeignColumn | None:
        """Return the allowed content of a column; None if it is not allowed."""
        in_lists = (content for prefix, content in self.lists.items() if name.startswith(prefix))
        return self.columns.get(name) or next(in_lists, self.others)


def read_parquet(source: bytes | Path, wanted: TableFormat) -> "pa.Table":
    """Read a Parquet file of others.

    Args:
        source: Content or path of the file.
        wanted: Allowed columns, metadata and sizes.

    Returns:
        Table whose columns are texts, float32, float64, int64, booleans or lists of a fixed size of these, with the
        allowed metadata only.

    Raises:
        BadData: The file is damaged, or has other columns, types, metadata or sizes; the message is a part of a
            sentence and does not name the file.
    """
    import pyarrow as pa

    if isinstance(source, Path) and not source.is_file():  # Reading a pipe would block.
        raise BadData("it is not a regular file")
    try:
        size = source.stat().st_size if isinstance(source, Path) else len(source)
        if size > MOST_BYTES:
            raise BadData(f"it has {size:,} bytes, but at most {MOST_BYTES:,} are allowed")
        content = source.read_bytes() if isinstance(source, Path) else source
        with _open(content) as file:
            found = _check(file, wanted, content)
        texts = [one.path for one in found if one.kind in _OF_BYTES]
        with _open(content, read_dictionary=texts) as file:
            table = file.read(use_threads=False)
        notes = {key: text for key, text in (file.metadata.metadata or {}).items() if key in wanted.metadata}
        table = _plain_columns(table, found, wanted).replace_schema_metadata(notes or None)
        table.validate(full=True)  # Texts are UTF-8, and dictionaries are complete.
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise BadData(f"it is no Parquet file that can be read: {one_line(error)}") from error
    return table


def check_cells(path: Path) -> None:
    """Refuse a Parquet file of any columns that would be far larger when decoded than tables are.

    For tables that the user names, whose columns are not known before; `read_parquet` reads all others.

    Raises:
        BadData: The table would be far larger when decoded than the file.
        ValueError: The file is damaged, or a column has more than `LONGEST_CELL` bytes per row.
        OSError: It cannot be read.
    """
    content = _mapped(path)
    decoded = 0
    with _open(content) as file:
        _check_rows(file.metadata.num_rows, len(content), 1 << 31)
        for place, _, rows, found in _chunks(content, file.metadata.num_columns):
            size = sum(page.uncompressed for page in found)
            if size > 10 * LONGEST_CELL + rows * LONGEST_CELL:
                raise ValueError(
                    f"its column {_shown([file.schema.column(place).path])} has {size:,} bytes for {rows:,} rows; "
                    f"at most {LONGEST_CELL:,} a row are allowed"
                )
            decoded += _decoded(found, _NUMBER)
    check_growth(decoded, len(content))


def check_recordings(path: Path, columns: Collection[str]) -> bytes:
    """Check a Parquet file of recordings without decoding it, before `datasets` reads it.

    Args:
        path: Path of the file.
        columns: Allowed columns, of which some may be structures or lists.

    Returns:
        The metadata of `datasets`, JSON that names the type of each column; empty if there are none.

    Raises:
        BadData: The file is damaged, or has other columns or metadata, or would be far larger when decoded; the message
            is a part of a sentence and does not name the file.
    """
    import pyarrow as pa

    if not path.is_file():
        raise BadData("it is not a regular file")
    decoded = 0
    try:
        content = _mapped(path)
        with _open(content) as file:
            footer, schema = file.metadata, file.schema
            names = {schema.column(number).path.split(".")[0] for number in range(footer.num_columns)}
            if more := sorted(names - set(columns)):
                raise BadData(f"its column {_shown(more)} is not allowed; allowed are {', '.join(columns)}")
            if len(file.schema_arrow.names) != len(names):
                raise BadData("it has a column twice")
            notes = footer.metadata or {}
            if other := [key.decode("utf-8", "replace") for key in notes if key not in (*IGNORED, *_OF_DATASETS)]:
                raise BadData(f"it has the metadata {_shown(other)}, which is not allowed")
            _check_rows(footer.num_rows, len(content), MOST_ROWS)
            for place, chunk, _, found in _chunks(content, file.metadata.num_columns):
                texts = schema.column(place).physical_type == "BYTE_ARRAY"
                largest = _largest_entry(found, chunk.compression, content) if texts else 0
                decoded += _decoded(found, _PLACE if texts else _NUMBER, largest)
        check_growth(decoded, len(content))
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise BadData(f"it is no Parquet file that can be read: {one_line(error)}") from error
    return bytes(notes.get(_OF_DATASETS[0], b""))


def _check_rows(rows: int, size: int, most: int) -> None:
    """Refuse more rows than allowed, or than distinct ids in a file of this size could have; raises `BadData`."""
    if rows > (most := min(most, max(_FEW_ROWS, ROWS_PER_BYTE * size))):
        raise BadData(f"it has {rows:,} rows in {size:,} bytes, but at most {most:,} are allowed")


def check_growth(decoded: int, size: int) -> None:
    """Refuse a file that would be far larger when decoded; raises `BadData`.

    Args:
        decoded: Size of the decoded content in bytes.
        size: Size of the file in bytes.
    """
    if decoded > (most := max(ALWAYS_ALLOWED, MOST_GROWTH * size)):
        raise BadData(f"its {size:,} bytes are {decoded:,} when decoded, but at most {most:,} are allowed")


def _mapped(path: Path) -> Content:
    """Return the content of a file, read as it is needed."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""


def _chunks(content: Content, columns: int) -> Iterator[tuple[int, Chunk, int, list[Page]]]:
    """Yield each column chunk: place of the column, chunk, number of rows and pages."""
    for rows, chunks in column_chunks(content):
        if len(chunks) != columns:
            raise ValueError(f"a row group has {len(chunks)} columns and not {columns}")
        for place, chunk in enumerate(chunks):
            yield place, chunk, rows, list(pages(content, chunk.start, chunk.length))


def _decoded(found: Collection[Page], width: int, largest: int = 0) -> int:
    """Return the largest possible size of the decoded values of a column chunk, from the headers of its pages.

    Args:
        found: Pages of the chunk.
        width: Bytes of a value in memory, or of its place for texts.
        largest: Size of the largest entry of its dictionary.
    """
    by_place = sum(page.values for page in found if page.encoding in BY_DICTIONARY)
    stored, values = (sum(getattr(page, name) for page in found) for name in ("uncompressed", "values"))
    return int(max(stored, width * values, largest * by_place))


def _largest_entry(found: Collection[Page], compression: str, content: Content) -> int:
    """Return the size of the largest text or recording in the dictionary of a column chunk; raises `BadData`."""
    import pyarrow as pa

    largest = 0
    for page in found:
        if page.values or not page.uncompressed:
            continue
        if compression not in _COMPRESSIONS:
            raise BadData(f"it is compressed by {compression}; allowed are {', '.join(_COMPRESSIONS)}")
        check_growth(page.uncompressed, len(content))
        entries = content[page.start : page.start + page.compressed]
        if compression != "UNCOMPRESSED":
            entries = pa.Codec(compression.lower()).decompress(entries, page.uncompressed, asbytes=True)
        place = 0
        while place < len(entries):
            size = int.from_bytes(entries[place : place + 4], "little")
            largest, place = max(largest, size), place + 4 + size
    return largest


def _open(content: Content, **options: Any) -> "pq.ParquetFile":
    import pyarrow as pa
    import pyarrow.parquet as pq

    # The limits guard the parsing of the footer.
    limits = {"thrift_string_size_limit": 10_000_000, "thrift_container_size_limit": 1_000_000}
    return pq.ParquetFile(pa.BufferReader(content), **limits, **options)


class _Leaf(NamedTuple):
    """Column of a file: its name, its path in the schema, its kind as stored, and its allowed content."""

    name: str
    path: str
    kind: str
    allowed: ForeignColumn


def _check(file: "pq.ParquetFile", wanted: TableFormat, content: bytes) -> list[_Leaf]:
    """Check the footer and the pages of a file and return its columns; raises `BadData`."""
    footer, schema = file.metadata, file.schema
    rows, count = footer.num_rows, footer.num_columns
    if count > MOST_COLUMNS:
        raise BadData(f"it has {count:,} columns, but at most {MOST_COLUMNS:,} are allowed")
    stored = [schema.column(number) for number in range(count)]
    names = [_name(one) for one in stored]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise BadData(f"its column {_shown(repeated)} occurs twice")
    if absent := [name for name in wanted.required if name not in names]:
        raise BadData(f"it lacks the column {_shown(absent)}; it has {_shown(names) or 'none'}")
    leaves = [_leaf(one, name, wanted) for one, name in zip(stored, names, strict=True)]
    allowed = (*IGNORED, *wanted.metadata)
    if more := [key.decode("utf-8", "replace") for key in footer.metadata or {} if key not in allowed]:
        raise BadData(f"it has the metadata {_shown(more)}, which is not allowed")
    _check_rows(rows, len(content), wanted.rows)
    if rows * count > MOST_CELLS:
        raise BadData(f"it has {rows:,} rows and {count:,} columns, but at most {MOST_CELLS:,} cells are allowed")
    _check_sizes(footer, leaves, content)
    return leaves


def _name(stored: "pq.ColumnSchema") -> str:
    """Return the name of a column of values or of lists; the whole path for other structures."""
    for end in _LISTS if stored.max_repetition_level else ():
        if stored.path.endswith(end):
            return str(stored.path.removesuffix(end))
    return str(stored.path)


def _leaf(stored: "pq.ColumnSchema", name: str, wanted: TableFormat) -> _Leaf:
    """Return a column if it is allowed; raises `BadData`."""
    allowed, kind = wanted.column(name), _kind(stored, name)
    if allowed is None:
        raise BadData(f"its column {_shown([name])} is not allowed; allowed are {', '.join(wanted.columns)}")
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise BadData(f"the name of its column {_shown([name])} is too long or not printable")
    in_lists = bool(stored.max_repetition_level)
    if allowed.kind == "frame":
        allowed = replace(allowed, kind="number") if in_lists else replace(allowed, each=0)
    if not _fits(kind, allowed.kind) or in_lists != bool(allowed.each):
        expected = "a list in each row" if allowed.each else f"a {allowed.kind} in each row"
        raise BadData(f"its column {_shown([name])} has values of another type; expected {expected}")
    return _Leaf(name, stored.path, kind, allowed)


def _check_sizes(footer: "pq.FileMetaData", leaves: Sequence[_Leaf], content: bytes) -> None:
    """Compare the sizes of pages with those of plain values, so that neither a cell nor a gap hides anything else."""
    groups = footer.num_row_groups
    if groups > 1 + footer.num_rows // _ROWS_PER_GROUP:
        raise BadData(f"it has {groups:,} row groups for {footer.num_rows:,} rows")
    used = total = cells = decoded = 0
    for rows, chunks in column_chunks(content):
        if len(chunks) != len(leaves):
            raise BadData(f"a row group has {len(chunks)} columns and not {len(leaves)}")
        for chunk, leaf in zip(chunks, leaves, strict=True):
            found = list(pages(content, chunk.start, chunk.length))
            if strange := {page.encoding for page in found if page.encoding is not None} - PLAIN_ENCODINGS.keys():
                raise BadData(f"its column {_shown([leaf.name])} has the encoding {min(strange)}, which is not allowed")
            each = max(leaf.allowed.each, 1)
            values = sum(page.values for page in found)
            if values > rows * each:
                raise BadData(f"its column {_shown([leaf.name])} has {values:,} values for {rows:,} rows")
            width = each * (16 + (leaf.allowed.longest if leaf.kind in _OF_BYTES else 8))
            size = sum(page.uncompressed for page in found)
            if size > _FOOTER + rows * width:
                raise BadData(
                    f"its column {_shown([leaf.name])} has {size:,} bytes for {rows:,} rows; at most {width:,} a row are allowed"
                )
            # The header of a page may repeat its smallest and largest value.
            header = _FOOTER + 2 * min(leaf.allowed.longest, _STATISTIC)
            if chunk.length > size + header * max(len(found), 1):
                raise BadData(f"its column {_shown([leaf.name])} has bytes that belong to no value")
            used, total, cells = used + chunk.length, total + size, cells + values
            decoded += _decoded(found, _PLACE if leaf.kind in _OF_BYTES else _NUMBER)
    if total > MOST_BYTES:
        raise BadData(f"it has {total:,} bytes when decompressed, but at most {MOST_BYTES:,} are allowed")
    check_growth(decoded, len(content))
    if cells > MOST_CELLS:
        raise BadData(f"it has {cells:,} values, but at most {MOST_CELLS:,} are allowed")
    spare = _FOOTER + max(groups, 1) * sum(
        _FOOTER + 20 * len(leaf.path) + 4 * min(leaf.allowed.longest, _STATISTIC) for leaf in leaves
    )
    if len(content) - used > spare:
        raise BadData(f"it has {len(content) - used:,} bytes besides its columns, but at most {spare:,} are allowed")


def _kind(stored: "pq.ColumnSchema", name: str) -> str:
    """Return the kind of a column as stored, whatever the Arrow schema in the metadata says; empty for other types."""
    deepest = 3 if stored.max_repetition_level else 1
    if (stored.path != name) != bool(stored.max_repetition_level) or stored.max_definition_level > deepest:
        return ""  # A structure, or a list of lists.
    if stored.max_repetition_level > 1 or (stored.path == name and stored.name != name):
        return ""
    logical = stored.logical_type.type
    if stored.physical_type == "BYTE_ARRAY":
        return "text" if logical == "STRING" else "bytes" if logical == "NONE" else ""
    if logical == "UNKNOWN":  # A column without any value.
        return "null"
    kinds = {"FLOAT": "number", "DOUBLE": "number", "INT32": "count", "INT64": "count", "BOOLEAN": "flag"}
    return kinds.get(stored.physical_type, "") if logical in ("NONE", "INT") else ""


def _fits(kind: str, allowed: str) -> bool:
    if kind == "bytes" or allowed == "frame":
        return (kind, allowed) == ("bytes", "frame") or kind == "null"
    return bool(kind) and (kind in (allowed, "null") or allowed == "any" or (kind, allowed) == ("count", "number"))


def _plain_columns(table: "pa.Table", leaves: Sequence[_Leaf], wanted: TableFormat) -> "pa.Table":
    """Return the columns with plain types, after checking the length of all lists and texts; raises `BadData`."""
    import pyarrow as pa

    total, columns = 0, {}
    for leaf in leaves:
        cells, length = table[leaf.name], 0
        if leaf.allowed.each:
            cells, length = _flat(cells, leaf)
        if leaf.kind in _OF_BYTES:
            longest, size = _text_sizes(cells, leaf.name)
            if longest > leaf.allowed.longest:
                what = "a text of " if leaf.kind == "text" else ""
                raise BadData(
                    f"its column {_shown([leaf.name])} has {what}{longest:,} bytes, but at most "
                    f"{leaf.allowed.longest:,} are allowed"
                )
            total += 0 if leaf.kind == "bytes" or leaf.name in wanted.repeated else size
            if total > MOST_BYTES:
                raise BadData(f"its texts exceed the limit of {MOST_BYTES:,} bytes")
        columns[leaf.name] = cells, length
    return pa.table(
        {leaf.name: _cast(*columns[leaf.name], leaf, repeated=leaf.name in wanted.repeated) for leaf in leaves}
    )


def _flat(cells: "pa.ChunkedArray", leaf: _Leaf) -> tuple["pa.ChunkedArray", int]:
    """Return the values of lists one after another, and the length of each list; raises `BadData`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (
        pa.types.is_list(cells.type) or pa.types.is_large_list(cells.type) or pa.types.is_fixed_size_list(cells.type)
    ):
        raise BadData(f"its column {_shown([leaf.name])} has the type {cells.type}")
    lengths = pc.unique(pc.list_value_length(cells)).to_pylist()
    if len(lengths) > 1 or None in lengths or not all(0 < length <= leaf.allowed.each for length in lengths):
        raise BadData(
            f"its column {_shown([leaf.name])} has lists of {first_n(lengths)} values; expected one list of the same length "
            f"in each row, of at most {leaf.allowed.each}"
        )
    return pa.chunked_array([chunk.flatten() for chunk in cells.chunks], type=cells.type.value_type), sum(lengths)


def _cast(cells: "pa.ChunkedArray", length: int, leaf: _Leaf, *, repeated: bool) -> "pa.ChunkedArray | pa.Array":
    """Return the values of a column with a plain type, in lists if they have a length."""
    import pyarrow as pa

    types = {"number": pa.float64(), "count": pa.int64(), "flag": pa.bool_(), "null": pa.null()}
    if leaf.kind == "text":
        kind = pa.dictionary(pa.int32(), pa.string()) if repeated else pa.string()
    elif leaf.kind == "bytes":  # Rows may share the same bytes, which are not copied for each.
        kind = pa.dictionary(pa.int32(), pa.binary())
    elif leaf.kind == "null" or pa.types.is_primitive(cells.type):
        kind = cells.type if pa.types.is_float32(cells.type) else types[leaf.kind]
    else:
        raise BadData(f"its column {_shown([leaf.name])} has the type {cells.type}")
    cells = cells.cast(kind)
    return pa.FixedSizeListArray.from_arrays(cells.combine_chunks(), length) if length else cells


def _text_sizes(cells: "pa.ChunkedArray", name: str) -> tuple[int, int]:
    """Return the length of the longest text, or bytes, and of all, in bytes, without decoding them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    longest, size, known = 0, 0, (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    for chunk in cells.chunks:
        if not isinstance(chunk, pa.DictionaryArray) or chunk.type.value_type not in known:
            raise BadData(f"its column {_shown([name])} has the type {cells.type}")
        lengths = pc.binary_length(chunk.dictionary)
        longest = max(longest, pc.max(lengths).as_py() or 0)
        size += pc.sum(pc.take(lengths, chunk.indices)).as_py() or 0
    return longest, size


def _shown(names: Collection[str]) -> str:
    """Return the first names, shortened for a message."""
    return first_n([repr(name[:60])[1:-1] for name in names])
