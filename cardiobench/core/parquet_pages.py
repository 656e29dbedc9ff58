"""Read the footer and the page headers of Parquet files, which state how much memory a page needs decompressed.

The footer of a file also states sizes, but readers do not use them when they allocate memory, so they can be false. Format:
https://github.com/apache/parquet-format (PageHeader, in the compact protocol of Thrift).
"""

from collections.abc import Iterator
from mmap import mmap
from typing import Any, NamedTuple

PLAIN_ENCODINGS = {
    0: "PLAIN",
    2: "PLAIN_DICTIONARY",
    3: "RLE",
    4: "BIT_PACKED",
    8: "RLE_DICTIONARY",
    9: "BYTE_STREAM_SPLIT",
}
"""Encodings whose pages are about as large as their values, or as their distinct values."""
BY_DICTIONARY = (2, 8)
"""Encodings whose pages have places in the dictionary of their column, so that a few bytes are any number of values."""
_UNCOMPRESSED, _COMPRESSED, _DATA, _DICTIONARY, _DATA_2 = 2, 3, 5, 7, 8
_ENCODING = {_DATA: 2, _DICTIONARY: 2, _DATA_2: 4}
_DEEPEST = 8
_VARINT_BYTES = 10


Content = bytes | mmap
"""A file, in memory or mapped."""


class Page(NamedTuple):
    """Size of a page in bytes, its encoding (None for a page without values), and the number of its values.

    A dictionary has no values of its own. `start` and `compressed` are the place of the content in the file.
    """

    uncompressed: int
    encoding: int | None
    values: int
    start: int
    compressed: int


CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")
"""Names of the compression codecs, by number."""


class Chunk(NamedTuple):
    """Column chunk: its codec, the position of its first page, and its length in bytes."""

    compression: str
    start: int
    length: int


def column_chunks(content: Content) -> Iterator[tuple[int, list[Chunk]]]:
    """Yield the number of rows and the column chunks of each row group, from the footer.

    pyarrow ends the process on some damaged footers when it is asked for a column chunk, so it is not asked.

    Raises:
        ValueError: The footer is damaged.
    """
    end = len(content) - 8
    start = end - int.from_bytes(content[end : end + 4], "little") if end > 0 else -1
    if start < 0 or content[end + 4 :] != b"PAR1":
        raise ValueError("its footer is damaged")
    footer, _ = _struct(content, start, end)
    for group in _structs(footer.get(4)):
        chunks = [_chunk(column.get(3)) for column in _structs(group.get(1))]
        yield _whole(group.get(3)), chunks


def _chunk(fields: Any) -> Chunk:
    if not isinstance(fields, dict):
        raise ValueError("a column of its footer is damaged")
    codec, length, data = (_whole(fields.get(place)) for place in (4, 7, 9))
    dictionary = _whole(fields.get(11, 0))
    return Chunk(CODECS[codec] if codec < len(CODECS) else str(codec), dictionary or data, length)


def _structs(value: Any) -> list[dict[int, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ValueError("its footer is damaged")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError("a number of its footer is damaged")
    return value


def pages(content: Content, start: int, length: int) -> Iterator[Page]:
    """Yield the pages of a column chunk.

    Args:
        content: The file.
        start: Position of the first page.
        length: Length of the chunk in bytes.

    Raises:
        ValueError: A header is damaged or leads out of the chunk.
    """
    position, end = start, start + length
    if not 0 <= start <= end <= len(content):
        raise ValueError(f"a column from {start} to {end} is outside the file of {len(content)} bytes")
    while position < end:
        header, position = _struct(content, position, end)
        uncompressed, compressed = header.get(_UNCOMPRESSED), header.get(_COMPRESSED)
        if not (isinstance(uncompressed, int) and isinstance(compressed, int) and min(uncompressed, compressed) >= 0):
            raise ValueError(f"a page has the sizes {uncompressed} and {compressed}")
        encodings = (header[kind].get(place) for kind, place in _ENCODING.items() if isinstance(header.get(kind), dict))
        values = (header[kind].get(1, 0) for kind in (_DATA, _DATA_2) if isinstance(header.get(kind), dict))
        yield Page(uncompressed, next(encodings, None), next(values, 0), position, compressed)
        position += compressed
    if position != end:
        raise ValueError(f"its pages end at {position}, but its column ends at {end}")


def _struct(content: Content, position: int, end: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """Return the fields of a struct by id, and the position behind it."""
    fields: dict[int, Any] = {}
    name = 0
    while (head := _byte(content, position, end)) != 0:
        position += 1
        if head >> 4:
            name += head >> 4
        else:
            name, position = _integer(content, position, end)
        fields[name], position = _value(content, position, end, head & 15, depth)
    return fields, position + 1


def _value(content: Content, position: int, end: int, kind: int, depth: int) -> tuple[Any, int]:
    """Return a value of a Thrift type, and the position behind it; texts are skipped."""
    if kind in (1, 2):
        return kind == 1, position
    if kind == 3:
        return _byte(content, position, end), position + 1
    if kind in (4, 5, 6):
        return _integer(content, position, end)
    if kind == 7:
        return None, position + 8
    if kind == 8:
        size, position = _varint(content, position, end)
        return None, position + size
    if kind in (9, 10) and depth < _DEEPEST:
        head, position = _byte(content, position, end), position + 1
        size, position = _varint(content, position, end) if head >> 4 == 15 else (head >> 4, position)
        if size > end - position:
            raise ValueError("a list in its metadata is longer than the metadata")
        values = []
        for _ in range(size):
            if head & 15 in (1, 2):  # In a list, a truth value is a byte.
                value, position = _byte(content, position, end) == 1, position + 1
            else:
                value, position = _value(content, position, end, head & 15, depth + 1)
            values.append(value)
        return values, position
    if kind == 12 and depth < _DEEPEST:
        return _struct(content, position, end, depth + 1)
    raise ValueError(f"its metadata have a field of type {kind}")


def _integer(content: Content, position: int, end: int) -> tuple[int, int]:
    """Return a zigzag-encoded integer, and the position behind it."""
    value, position = _varint(content, position, end)
    return (value >> 1) ^ -(value & 1), position


def _varint(content: Content, position: int, end: int) -> tuple[int, int]:
    value = 0
    for place in range(_VARINT_BYTES):
        byte = _byte(content, position + place, end)
        value |= (byte & 127) << (7 * place)
        if byte < 128:
            return value, position + place + 1
    raise ValueError("a number in its metadata has no end")


def _byte(content: Content, position: int, end: int) -> int:
    if position >= end:
        raise ValueError("its metadata are cut off")
    return content[position]
