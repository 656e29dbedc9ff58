"""Reading of user tables: CSV, Excel or Parquet, with ids as text and numbers at full precision."""

import codecs
import csv
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from cardiobench.core import workbook
from cardiobench.core.errors import BadData, CardioBenchError, MissingData, TableWarning, first_n, one_line
from cardiobench.core.foreign import check_cells
from cardiobench.core.io import write_atomic

MOST_COLUMNS = 100_000
LONGEST_CSV = 1 << 30
"""Maximum size of a CSV file in bytes."""
MOST_CELLS = 100_000_000
"""Maximum number of rows times columns of a CSV file."""
TEXT = pd.StringDtype("pyarrow", na_value=np.nan)
"""String type for columns of mostly unique texts: needs a fifth of the memory of Python strings, but is slow for access
by row."""
SNIFFED = 20
"""Number of rows from which the separator of a CSV is recognised."""
_SEPARATORS = "\t;,"
_QUOTED = re.compile(r'"[^"]*"')
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_THOUSANDS = re.compile(r"\s*[-+]?\d{1,3}(?:\.\d{3})+\s*")
_DECIMAL_COMMA = re.compile(r"^(\s*[-+]?\d*),(\d+\s*)$")
_COMMA_THOUSANDS = re.compile(r"\s*[-+]?[1-9]\d{0,2}(?:,\d{3})+\s*")
_POINT_THOUSANDS = re.compile(r"\s*[-+]?[1-9]\d{0,2}(?:\.\d{3})+\s*")
_WHOLE_NUMBER = re.compile(r"\s*[-+]?\d+\s*")
_EXCEL_SEPARATOR = re.compile(r"\"?sep=.\"?", re.IGNORECASE)

OTHER_SPREADSHEETS = (".xls", ".xlsb", ".ods", ".numbers")
SECOND_ENCODING = "cp1252"
"""Encoding of a text that is not UTF-8: that of Windows in Western Europe and the Americas."""


def read_table(
    source: str | Path | pd.DataFrame,
    *,
    sheet: str = "",
    encoding: str = "",
    error: type[CardioBenchError] = BadData,
    faults: list[CardioBenchError] | None = None,
) -> pd.DataFrame:
    """Read a CSV, Excel or Parquet file as a data frame; data frames are copied.

    The cells of a CSV or of a sheet stay text: `007` is not 7. A CSV is UTF-8, UTF-16 with a byte-order mark, or else
    Windows-1252, which a `TableWarning` says. Its separator is `,`, `;` or a tab (`separator_of`). With `;` or a tab and in a sheet, a comma
    inside a number is the decimal sign, except in a file with tabs where every comma of a column may mark thousands.
    Parquet and frames keep their types; a named index becomes a column.

    Args:
        source: File or frame.
        sheet: Name of the sheet of a workbook; empty for the only one with cells (`workbook.read_workbook`).
        encoding: Encoding of a CSV, which is then not guessed.
        error: Class of the error for a table that cannot be read.
        faults: List to which faults of a sheet are added instead of being raised (`workbook.read_workbook`).

    Returns:
        The table. `attrs` has the `encoding` of a CSV and the `sheet` and `changed` cells of a workbook; and for CSVs with
        `;` or tabs `thousands`, two cells of each column in which points may be thousands marks (`check_thousands`).

    Raises:
        MissingData: There is no such file.
        CardioBenchError: The table is empty, truncated, in another encoding, or has a repeated column.
    """
    if isinstance(source, pd.DataFrame):
        return _indexed_by_place(_with_single_columns(source.copy(), "the data frame", error))
    if not isinstance(source, (str, Path)):
        raise error(f"expected a CSV, Excel or Parquet file, or a data frame, got a {type(source).__name__}.")
    path = Path(source)
    if not path.is_file():
        raise MissingData(f"{path} does not exist or is not a file. Check the path.")
    kind = path.suffix.lower()
    if kind in OTHER_SPREADSHEETS:
        raise error(f"{path} is a spreadsheet of another kind than .xlsx. Save the sheet as .xlsx or as CSV (UTF-8).")
    flag, given = ("--sheet", sheet) if kind not in workbook.SUFFIXES else ("--encoding", encoding)
    if given and (flag == "--sheet" or kind in workbook.SUFFIXES):
        raise error(f"{flag} {given!r:.40} does not apply to {path}. Leave it out.")
    try:
        if kind in workbook.SUFFIXES:
            found: list[str] = []
            table = _with_decimal_points(workbook.read_workbook(path, sheet, faults=None if faults is None else found))
            for fault in found:
                faults.append(_unreadable(path, fault, error))  # type: ignore[union-attr]  # found is empty without it
        elif kind in (".parquet", ".pq"):
            table = _with_single_columns(_read_parquet(path), path.name, error)
        else:
            table = _read_csv(path, encoding)
    except UnicodeError as problem:
        raise error(
            f"{path} is not text in {_tried(encoding)} ({problem}). Save it as UTF-8 CSV or as Parquet."
        ) from problem
    except (ValueError, OSError, csv.Error, pd.errors.ParserWarning) as problem:
        raise _unreadable(path, problem, error) from problem
    if table.empty:
        raise error(f"{path} has no rows. Give one row per recording.")
    return table


def _unreadable(path: Path, problem: object, error: type[CardioBenchError]) -> CardioBenchError:
    return error(f"{path} cannot be read as a table ({one_line(problem)}). {_advice(path.suffix.lower())}")


def _advice(kind: str) -> str:
    if kind in workbook.SUFFIXES:
        return "Correct the workbook, or save the sheet as CSV."
    return "Save it as CSV with a header line, or as Parquet."


def _tried(encoding: str) -> str:
    return encoding or f"UTF-8 or {SECOND_ENCODING}"


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        check_cells(path)
        table = pd.read_parquet(path)
    except BadData as error:  # Limits.
        raise ValueError(str(error)) from None
    except (KeyError, TypeError) as error:  # Part of the column metadata written by pandas.
        raise ValueError(f"its pandas metadata is damaged: {error}") from error
    return _indexed_by_place(table)


def _with_single_columns(table: pd.DataFrame, what: str, error: type[CardioBenchError]) -> pd.DataFrame:
    """Refuse a table with a repeated column name."""
    repeated = table.columns[table.columns.duplicated()]
    if len(repeated):
        raise error(f"{what}: column {first_n(repeated.unique())} occurs twice; remove one of them.")
    return table


def _indexed_by_place(table: pd.DataFrame) -> pd.DataFrame:
    names = [name for name in table.index.names if name is not None and name not in table.columns]
    return (table.reset_index(names) if names else table).reset_index(drop=True)


def _read_csv(path: Path, given: str) -> pd.DataFrame:
    if (size := path.stat().st_size) > LONGEST_CSV:
        raise ValueError(f"it has {size:,} bytes, but at most {LONGEST_CSV:,} are allowed")
    content = path.read_bytes()
    encoding = _encoding(content, given, path)
    if encoding in ("utf-8-sig", SECOND_ENCODING) and (zero := content.find(b"\0")) >= 0:
        hint = (
            f", so it may be {wide} without a byte-order mark; save it as UTF-8, or give adopt --encoding {wide}"
            if (wide := _unmarked(content))
            else ""
        )
        raise ValueError(f"line {content.count(10, 0, zero) + 1} contains a zero byte{hint}")
    with path.open(encoding=encoding, newline="") as file:
        first_line, *rows = list(islice(file, 1 + SNIFFED)) or [""]
    if _EXCEL_SEPARATOR.fullmatch(first_line.strip()):
        raise ValueError(
            f"its first line is {first_line.strip()!r}, which only Excel understands; remove this line, so that the names of "
            "the columns come first"
        )
    separator = separator_of(first_line, rows)
    if first_line.count(separator) >= MOST_COLUMNS:
        raise ValueError(f"it has more than {MOST_COLUMNS} columns")
    lines, columns = content.count(b"\n"), first_line.count(separator) + 1
    del content
    if lines * columns > MOST_CELLS:
        raise ValueError(
            f"it has {lines:,} lines and {columns:,} columns, but at most {MOST_CELLS:,} cells are allowed"
        )
    options = {"sep": separator, "dtype": str, "keep_default_na": False, "encoding": encoding, "compression": None}
    header = pd.read_csv(path, header=None, nrows=1, **options).iloc[0].str.strip().str.lower().tolist()
    repeated = {name for name, count in Counter(header).items() if name and count > 1}
    if repeated:
        raise ValueError(f"column {first_n(sorted(repeated))} occurs twice (ignoring case); remove one of them")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        table = pd.read_csv(path, index_col=False, **options)
    if separator != ",":
        thousands = _maybe_thousands(table)
        table = _with_decimal_points(table, tabs=separator == "\t")
        table.attrs["thousands"] = thousands
    table.attrs["encoding"] = encoding
    return table


def _unmarked(content: bytes) -> str:
    """Return the encoding of UTF-16 without a byte-order mark, in which every other byte of Latin text is zero; else ""."""
    start = content[:2000]
    even, odd = start[::2].count(0), start[1::2].count(0)
    if max(even, odd) < 0.4 * len(start) / 2 or min(even, odd) > 0.1 * len(start) / 2:
        return ""
    return "utf-16-le" if odd > even else "utf-16-be"


def _with_decimal_points(table: pd.DataFrame, *, tabs: bool = False) -> pd.DataFrame:
    """Replace decimal commas, except in columns in which points or commas may be thousands marks.

    Args:
        table: Table of texts.
        tabs: Whether tabs separate its cells, as in exports in English, whose thousands marks are commas.
    """

    def replaced(column: pd.Series) -> pd.Series:
        commas = column[column.str.fullmatch(_DECIMAL_COMMA).eq(True)]
        if len(commas) and column.str.fullmatch(_THOUSANDS).any():
            return column
        if tabs and len(commas) and commas.str.fullmatch(_COMMA_THOUSANDS).all():
            return column
        return column.map(decimal_point)

    return table.apply(replaced)


def _maybe_thousands(table: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Return two cells of each column in which every point may be a thousands mark: `1.201` beside the whole number `350`."""
    found = {}
    for name in table:
        cells = pd.Series(table[name].unique()).str.strip()
        points = cells[cells.str.fullmatch(_PLAIN_NUMBER) & cells.str.contains(".", regex=False)]
        whole = cells[cells.str.fullmatch(_WHOLE_NUMBER)]
        if len(whole) and len(points) and points.str.fullmatch(_POINT_THOUSANDS).all():
            found[str(name)] = str(points.iloc[0]), str(whole.iloc[0])
    return found


def check_thousands(
    table: pd.DataFrame, columns: Collection[str], what: str, error: type[CardioBenchError] = BadData
) -> None:
    """Refuse columns of numbers in which points may be thousands marks (`attrs` of `read_table`).

    Args:
        table: Table as read.
        columns: Names of columns of numbers.
        what: Name of the table in messages.
        error: Class of the error.
    """
    for name, (point, whole) in table.attrs.get("thousands", {}).items():
        if name in columns:
            raise error(
                f"{what}, column '{name}': in {point!r} beside {whole!r} the point may be a thousands mark or a decimal "
                f"point. Write thousands without a mark ({point.replace('.', '')}), or {whole}.0 for {whole}."
            )


def _encoding(content: bytes, given: str, path: Path) -> str:
    """Return the encoding of a CSV: as given, else UTF-16 with a byte-order mark, UTF-8, or Windows-1252 with a warning.

    Raises:
        UnicodeError: The content is in none of these.
        ValueError: The given name is not that of an encoding of text.
    """
    if given:
        try:
            name = codecs.lookup(given).name
            content.decode(name)
        except LookupError as error:
            raise ValueError(
                f"{given!r:.40} is not the name of an encoding, such as utf-8, cp1252 or iso8859-15"
            ) from error
        return "utf-8-sig" if name == "utf-8" else name
    if (encoding := encoding_of(content)) == "utf-16":
        content.decode(encoding)
        return encoding
    try:
        content.decode(encoding)
    except UnicodeDecodeError as error:
        try:
            content.decode(SECOND_ENCODING)
        except UnicodeDecodeError:
            raise error from None
        warnings.warn(
            f"{path} is not UTF-8, so it is read as {SECOND_ENCODING} (Windows); if that is wrong, save it as UTF-8, or give adopt its --encoding",
            TableWarning,
            stacklevel=2,
        )
        return SECOND_ENCODING
    return encoding


def encoding_of(start: bytes) -> str:
    """Return the encoding of a text from its first bytes: UTF-16 with a byte-order mark, else UTF-8."""
    return "utf-16" if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"


def separator_of(header: str, rows: Iterable[str] = ()) -> str:
    """Return the delimiter of a CSV: tab, semicolon or comma.

    It is the first of these that is as frequent in each row as in the header. Names of columns may have commas, and
    numbers decimal commas. If none is, or no rows are given, it is the most frequent one in the header. What is in
    quotation marks does not count.

    Args:
        header: First line.
        rows: Some of the following lines; those after a cell with a line break are not considered.
    """
    lines = [row for row in takewhile(lambda row: row.count('"') % 2 == 0, rows) if row.strip()]
    bare, *below = (_QUOTED.sub("", line) for line in (header, *lines))
    regular = [one for one in _SEPARATORS if one in bare and all(row.count(one) == bare.count(one) for row in below)]
    return regular[0] if regular and below else max(reversed(_SEPARATORS), key=bare.count)


def decimal_point(cell: str) -> str:
    """Replace a decimal comma (`3,5`) by a point; return other texts unchanged."""
    return _DECIMAL_COMMA.sub(r"\1.\2", cell) if "," in cell else cell  # A million cells without commas take a second.


def text_of(column: pd.Series) -> pd.Series:
    """Convert cells to text: stripped, whole numbers without a decimal point, "" for null."""
    empty = column.isna()
    if pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_integer_dtype(column.dtype):
        whole = "UInt64" if pd.api.types.is_unsigned_integer_dtype(column.dtype) else "Int64"
        text = column.astype(whole).astype(str)
    elif pd.api.types.is_float_dtype(column.dtype):
        text = column.map(lambda value: str(int(value)) if np.isfinite(value) and value == int(value) else repr(value))
    else:
        if pd.api.types.infer_dtype(column) == "bytes":
            column = column.str.decode("utf-8", "replace")
        text = column.astype(str).map(str.strip, na_action="ignore")  # pandas 3 keeps a null.
    return text.astype(object).mask(empty, "") if empty.any() else text.astype(object)


def numbers_of(column: pd.Series, ids: pd.Series, what: str, error: type[CardioBenchError] = BadData) -> np.ndarray:
    """Convert cells to float64, with NaN for empty cells; raise for text that is not a number, naming its rows.

    Args:
        column: Cells, (n,).
        ids: The rows' ids, for the message.
        what: Name of the file and column in messages.
        error: Class of the error.
    """
    values = column.astype(object).mask(
        column.isna() | (column.astype(str).map(str.strip, na_action="ignore") == ""), np.nan
    )
    if not _may_differ(values):  # Converting a million cells one by one takes a second.
        with suppress(ValueError):
            return np.asarray(values, dtype=np.float64)
    odd = values.map(_is_no_number)
    try:
        if not odd.any():
            return np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError):
        odd = pd.to_numeric(values, errors="coerce").isna() & values.notna()
    if odd.any():
        rows = [f"{name} ({cell!r})" for name, cell in zip(ids[odd], column[odd], strict=True)]
        raise error(f"{what}: {len(rows)} of {len(column)} cells are not numbers: {first_n(rows)}.")
    raise error(f"{what} has cells that are not numbers. Correct or remove them.")


def _may_differ(cells: pd.Series) -> bool:
    """Return whether float() accepts a cell that is not a number: 0_1, digits of other scripts and complex scalars."""
    if not set(map(type, cells)) <= {str, float}:
        return True
    text = "".join(cell for cell in cells if isinstance(cell, str))
    return "_" in text or not text.isascii()


def _is_no_number(cell: Any) -> bool:
    return isinstance(cell, complex) or (isinstance(cell, str) and not _NUMBER.fullmatch(cell.strip()))


def write_csv(table: pd.DataFrame, path: str | Path) -> Path:
    """Write a table as UTF-8 CSV, atomically, and escape texts that a spreadsheet would read as formulas."""
    safe = table.apply(lambda cells: cells if is_numeric_dtype(cells.dtype) else cells.map(escape_formula))
    safe = safe.rename(columns=escape_formula)
    return write_atomic(path, lambda partial: safe.to_csv(partial, index=False, encoding="utf-8"))


def escape_formula(cell: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would run as a formula; `unescape_formula` removes it."""
    is_formula = isinstance(cell, str) and _FORMULA.match(cell) and not _PLAIN_NUMBER.fullmatch(cell)
    return f"'{cell}" if is_formula else cell


def unescape_formula(cell: Any) -> Any:
    """Undo `escape_formula`."""
    return cell[1:] if isinstance(cell, str) and cell[:1] == "'" and _FORMULA.match(cell[1:]) else cell


def write_parquet(table: pd.DataFrame, path: str | Path) -> Path:
    """Write a table as Parquet, atomically."""
    return write_atomic(path, lambda partial: table.to_parquet(partial, index=False))
