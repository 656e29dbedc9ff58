"""Typed columns of release tables; messages name invalid cells by file, line, column and value."""

import csv
import difflib
import gzip
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv_reader

from cardiobench.core.errors import BadData, MissingData, first_n
from cardiobench.core.tables import SNIFFED, decimal_point, encoding_of, separator_of

EMPTY = frozenset({"", "nan", "na", "n/a", "null", "none", "<na>"})
"""Texts of empty cells, regardless of case."""
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"(?P<sign>[+-]?)0*(?P<digits>[0-9]+)(\.0*)?")


@dataclass(frozen=True)
class Column:
    """Parser of the cells of a column.

    Attributes:
        expected: Description of a valid cell, for messages.
        parse: Function from text without surrounding blanks to value; raises `ValueError`.
        optional: Whether cells may be empty, giving None (NaN in a column of numbers).
        dtype: Data type of the column.
        empty: Texts of empty cells, in lower case.
        verbatim: Regular expression (RE2) of cells that equal their value, so that parsing is skipped; empty for none.
    """

    expected: str
    parse: Callable[[str], Any]
    optional: bool = False
    dtype: str = "object"
    empty: frozenset[str] = EMPTY
    verbatim: str = ""

    def read(self, cells: Sequence[str], where: Callable[[int], str]) -> list[Any]:
        """Parse cells.

        Args:
            cells: Texts.
            where: Function from index of a cell to its file, line and column, for messages.

        Raises:
            BadData: A cell is invalid.
        """
        values: dict[str, Any] = {}
        wrong: set[str] = set()
        for cell in dict.fromkeys(cells):
            text = cell.strip()
            try:
                if "\0" in cell:
                    raise ValueError(cell)
                if text.lower() in self.empty:
                    if not self.optional:
                        raise ValueError(cell)
                    values[cell] = math.nan if self.dtype == "float64" else None
                else:
                    values[cell] = self.parse(text)
            except (ValueError, KeyError):
                wrong.add(cell)
        if wrong:
            indices = [index for index, cell in enumerate(cells) if cell in wrong]
            more = f" ({len(indices)} of {len(cells)} rows are wrong)" if len(indices) > 1 else ""
            cell = cells[indices[0]]
            shown = "is empty" if cell.strip().lower() in self.empty else f"is {cell!r}"
            raise BadData(
                f"{where(indices[0])} {shown}; expected {self.expected}{more}. Correct the cell or download the file again."
            )
        return [values[cell] for cell in cells]


def text(pattern: str = "", expected: str = "text", *, optional: bool = False, empty: frozenset[str] = EMPTY) -> Column:
    """Return a parser of text, which must match a regular expression if one is given."""
    shape = re.compile(pattern) if pattern else None

    def parse(cell: str) -> str:
        if shape is not None and not shape.fullmatch(cell):
            raise ValueError(cell)
        return cell

    return Column(expected, parse, optional, empty=empty)


def number(low: float = -math.inf, high: float = math.inf, *, unit: str = "", optional: bool = False) -> Column:
    """Return a parser of finite numbers from `low` to `high`."""

    def parse(cell: str) -> float:
        value = float(cell) if _NUMBER.fullmatch(cell) else math.nan
        if not (math.isfinite(value) and low <= value <= high):
            raise ValueError(cell)
        return value

    expected = "a number" + _limits(low, high) + (f" ({unit})" if unit else "")
    return Column(expected, parse, optional, "float64")


def integer(low: float = -math.inf, high: float = math.inf, *, optional: bool = False) -> Column:
    """Return a parser of 64-bit whole numbers from `low` to `high`; `401.0` is 401."""

    def parse(cell: str) -> int:
        value = int(identifier_text(cell))
        if not (low <= value <= high and -(2**63) <= value < 2**63):
            raise ValueError(cell)
        return value

    return Column("a whole number" + _limits(low, high), parse, optional)


def identifier(*, optional: bool = False) -> Column:
    """Return a parser of whole numbers used as ids, as text of any length; `401.0` is "401"."""
    return Column("a whole number", identifier_text, optional, verbatim=r"^(0|[1-9][0-9]*)$")


def identifier_text(cell: str) -> str:
    """Return the digits of a whole number; raises `ValueError` for anything else."""
    match = _INTEGER.fullmatch(cell)
    if match is None:
        raise ValueError(cell)
    return ("-" if match["sign"] == "-" and match["digits"] != "0" else "") + match["digits"]


def choice(values: Mapping[str, Any], *, optional: bool = False) -> Column:
    """Return a parser of names, regardless of case, that returns the value of each name."""
    known = {name.lower(): value for name, value in values.items()}
    return Column(f"one of {', '.join(values)}", lambda cell: known[cell.lower()], optional)


def flag(*, optional: bool = False) -> Column:
    """Return a parser of true and false, or 1 and 0."""
    names = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}
    return Column("true or false", lambda cell: names[cell.lower()], optional)


def _limits(low: float, high: float) -> str:
    if math.isinf(low) and math.isinf(high):
        return ""
    if math.isinf(high):
        return f" of {low:g} or more"
    return f" from {low:g} to {high:g}"


def read_columns(
    path: Path,
    columns: Mapping[str, Column],
    *,
    extra: Mapping[str, Column] | None = None,
    where: Mapping[str, Callable[[str], bool]] | None = None,
) -> pd.DataFrame:
    """Read columns of a release's CSV.

    The separator may be a comma, semicolon or tab, and the file may be UTF-8 or UTF-16 with a byte-order mark, or
    gzip-compressed. Rows without any value are skipped.

    Args:
        path: The file.
        columns: Mapping from name to parser; all columns must be in the file.
        extra: Mapping from name to parser of columns that older releases lack; missing ones are empty.
        where: Mapping from column to condition on its cells for reading a row; by default all rows are read.

    Returns:
        Frame of these columns with an index `line`, the last line of each row in the file.

    Raises:
        MissingData: There is no such file.
        BadData: The file is empty, cut short or not text, lacks or repeats a column, or has an invalid cell.
    """
    if where is None and (frame := _plain_columns(path, columns, extra or {})) is not None:
        return frame
    rows = read_rows(path)
    _, header = next(rows, (0, None))
    if header is None:
        raise BadData(f"{path} is empty. Download it again.")
    return typed_columns(path, header, rows, columns, extra=extra, where=where)


def _plain_columns(path: Path, columns: Mapping[str, Column], extra: Mapping[str, Column]) -> pd.DataFrame | None:
    """Read an undamaged CSV without quotes and blank lines like `read_columns`, but a hundred times faster.

    Returns:
        The same frame; None for other files, for which `read_rows` is used and names an invalid line.
    """
    if not path.is_file() or path.suffix == ".gz":
        return None
    content = path.read_bytes()
    ends = content.count(b"\n")
    lines = ends + (not content.endswith(b"\n"))
    if b'"' in content or content[:2] in (b"\xff\xfe", b"\xfe\xff") or content.count(b"\r") not in (0, ends):
        return None
    header = content[: content.find(b"\n")].decode("utf-8-sig", errors="replace").rstrip("\r")
    names = header.split(",")
    wanted = dict(columns) | {name: column for name, column in extra.items() if name in names}
    if (
        separator_of(header) != ","
        or len({name.lower() for name in names}) < len(names)
        or not set(wanted) <= set(names)
    ):
        return None
    options = csv_reader.ConvertOptions(
        include_columns=list(wanted),
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=False,
        check_utf8=not content.isascii(),
    )
    try:
        one_thread = csv_reader.ReadOptions(use_threads=False)  # Equally fast with half the memory.
        table = csv_reader.read_csv(pa.BufferReader(content), read_options=one_thread, convert_options=options)
        del content
        if len(table) != lines - 1:
            return None
        index = pd.RangeIndex(2, lines + 1, name="line")
        cells = {}
        for name, column in wanted.items():
            cells[name] = pd.Series(_parsed(table[name], column), index=index, dtype=column.dtype)
            table = table.drop_columns(name)  # Release the text once its values are known.
        frame = pd.DataFrame(cells, index=index, copy=False)
        pa.default_memory_pool().release_unused()
    except (pa.ArrowInvalid, BadData):
        return None
    for name, column in extra.items():
        if name not in frame:
            frame[name] = pd.Series(None if column.dtype == "object" else np.nan, index=frame.index, dtype=column.dtype)
    return frame


def _parsed(cells: pa.ChunkedArray, column: Column) -> np.ndarray:
    """Parse the distinct cells of a column; raises `BadData` for invalid cells."""
    if column.verbatim and pc.all(pc.match_substring_regex(cells, column.verbatim)).as_py():
        return cells.to_numpy()
    encoded = cells.combine_chunks().dictionary_encode()
    values = column.read(encoded.dictionary.to_pylist(), lambda cell: "")
    return pd.Series(values, dtype=column.dtype).to_numpy()[encoded.indices.to_numpy()]


def typed_columns(
    path: Path,
    header: Sequence[str],
    rows: Iterable[tuple[int, Sequence[str]]],
    columns: Mapping[str, Column],
    *,
    extra: Mapping[str, Column] | None = None,
    where: Mapping[str, Callable[[str], bool]] | None = None,
) -> pd.DataFrame:
    """Read columns from the rows of a table, given as line and cells (`read_columns`)."""
    names = [name.strip() for name in header]
    wanted = dict(columns) | {name: column for name, column in (extra or {}).items() if name in names}
    _check_header(path, names, columns, wanted)
    positions = [names.index(name) for name in wanted]
    _check_header(path, names, tuple(where or ()), {})
    tests = [(names.index(name), accepts) for name, accepts in (where or {}).items()]
    pick = itemgetter(*positions) if len(positions) > 1 else lambda row: (row[positions[0]],)
    lines: list[int] = []
    picked: list[Sequence[str]] = []
    for line, row in rows:
        if len(row) != len(names) and (len(row) < len(names) or any(cell.strip() for cell in row[len(names) :])):
            raise BadData(
                f"{path}, line {line}: {len(row)} cells, but the header has {len(names)} columns. "
                "The file is cut short or damaged; download it again."
            )
        if all(accepts(row[position]) for position, accepts in tests):
            lines.append(line)
            picked.append(pick(row))
    cells = list(zip(*picked, strict=True)) or [()] * len(wanted)
    del picked
    index = pd.Index(lines, name="line", dtype="int64")
    frame = pd.DataFrame(index=index)
    for (name, column), texts in zip(wanted.items(), cells, strict=True):
        values = column.read(texts, _cell_name(path, name, lines))
        frame[name] = pd.Series(values, index=index, dtype=column.dtype)
    for name, column in (extra or {}).items():
        if name not in frame:
            frame[name] = pd.Series(None if column.dtype == "object" else np.nan, index=index, dtype=column.dtype)
    return frame


def _cell_name(path: Path, column: str, lines: Sequence[int]) -> Callable[[int], str]:
    """Return the text that identifies a row's cell in messages."""
    return lambda row: f"{path}, line {lines[row]}, column '{column}'"


def check_columns(path: Path, names: Sequence[str], needed: Collection[str]) -> None:
    """Refuse a table without some columns.

    Args:
        path: File of the table, for the message.
        names: Columns of the table.
        needed: Columns that it must have.

    Raises:
        BadData: Columns are absent; the message has the nearest existing one.
    """
    absent = [column for column in needed if column not in names]
    if absent:
        near = difflib.get_close_matches(absent[0], names[:1000], n=1, cutoff=0.4)
        hint = f" The nearest is '{near[0]}'." if near else ""
        raise BadData(f"{path} has no column {', '.join(map(repr, absent))}; it has {first_n(names, 50)}.{hint}")


def _check_header(path: Path, names: Sequence[str], columns: Collection[str], wanted: Mapping[str, Column]) -> None:
    check_columns(path, names, columns)
    counts = Counter(name.lower() for name in names)
    repeated = [name for name in wanted if counts[name.lower()] > 1]
    if repeated:
        raise BadData(
            f"{path} has the column {first_n(map(repr, repeated))} more than once: {first_n(names, 50)}. Remove one of them."
        )


def read_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the cells of each row of a CSV, the header first; rows without any value are skipped.

    Raises:
        MissingData: There is no such file.
        BadData: The file is not text, or not a CSV.
    """
    if not path.is_file():
        raise MissingData(f"{path.name} is missing from {path.parent}. Complete the download or check --data-dir.")
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as binary:
            encoding = encoding_of(binary.read(4))
        with opened(path, "rt", encoding=encoding, newline="") as stream:
            separator = separator_of(stream.readline(), islice(stream, SNIFFED))
            stream.seek(0)
            reader = csv.reader(stream, delimiter=separator, strict=True)
            for row in reader:
                if any(cell.strip() for cell in row):
                    yield reader.line_num, [decimal_point(cell) for cell in row] if separator == ";" else row
    except (UnicodeError, csv.Error, EOFError, OSError, zlib.error) as error:
        raise BadData(f"{path} cannot be read as a CSV ({error}). Download it again.") from None


def read_fields(path: Path, fields: Mapping[str, Column]) -> dict[str, Any]:
    """Read the `Key: value` lines of a small text file.

    Args:
        path: The file.
        fields: Mapping from key to parser of its value; missing optional keys give None.

    Raises:
        BadData: The file is not text, a key is missing or repeated, or a value is invalid.
    """
    if not path.is_file():
        raise BadData(f"{path} is not a regular file. Download it again.")
    try:
        lines = path.read_text(encoding=encoding_of(path.read_bytes()[:4])).splitlines()
    except (UnicodeError, OSError) as error:
        raise BadData(f"{path} is not text ({error}). Download it again.") from None
    found: dict[str, tuple[int, str]] = {}
    for line, content in enumerate(lines, 1):
        key, colon, value = content.partition(":")
        if not content.strip():
            continue
        if not colon:
            raise BadData(f"{path}, line {line}: {content!r} is not 'Key: value'. Download the file again.")
        if key.strip() in fields and key.strip() in found:
            raise BadData(f"{path}, line {line}: {key.strip()!r} occurs twice. Download the file again.")
        found[key.strip()] = (line, value)
    absent = [key for key, column in fields.items() if key not in found and not column.optional]
    if absent:
        raise BadData(f"{path} has no {', '.join(map(repr, absent))}; it has {', '.join(found)}. Download it again.")
    values = {}
    for key, column in fields.items():
        line, value = found.get(key, (0, ""))
        (values[key],) = column.read([value], _cell_name(path, key, [line]))
    return values
