"""Reading of user tables: CSV or Parquet, with ids as text and numbers at full precision."""

import codecs
import csv
import re
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from cardiobench.core.errors import BadData, BadPredictions, MissingData, first_n
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
_SEPARATORS = ",;\t"
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"^(\s*[-+]?\d*),(\d+\s*)$")


SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods", ".numbers")


def read_table(source: str | Path | pd.DataFrame) -> pd.DataFrame:
    """Read a CSV or Parquet file as a data frame; data frames are copied.

    The cells of a CSV stay text: `007` is not 7. It is UTF-8 or, with a byte-order mark, UTF-16, and has `,`, `;` or
    tabs as separator; with `;` a comma inside a number is the decimal sign. Parquet and frames keep their types; a
    named index becomes a column.

    Raises:
        MissingData: There is no such file.
        BadPredictions: The table is empty, truncated, not UTF-8, or has a repeated column.
    """
    if isinstance(source, pd.DataFrame):
        return _indexed_by_place(_with_single_columns(source.copy(), "the data frame"))
    if not isinstance(source, (str, Path)):
        raise BadPredictions(f"expected a CSV or Parquet file, or a data frame, got a {type(source).__name__}.")
    path = Path(source)
    if not path.is_file():
        raise MissingData(f"{path} does not exist or is not a file. Check the path.")
    if path.suffix.lower() in SPREADSHEETS:
        raise BadPredictions(
            f"{path} is a spreadsheet; only CSV and Parquet are supported. Save the sheet as CSV (UTF-8)."
        )
    try:
        table = _read_parquet(path) if path.suffix.lower() in (".parquet", ".pq") else _read_csv(path)
    except UnicodeDecodeError as error:
        raise BadPredictions(f"{path} is not UTF-8 text ({error}). Save it as UTF-8 CSV or as Parquet.") from error
    except (ValueError, OSError, csv.Error, pd.errors.ParserWarning) as error:
        raise BadPredictions(
            f"{path} cannot be read as a table ({' '.join(str(error).split())}). Save it as CSV with a header line, or as Parquet."
        ) from error
    if table.empty:
        raise BadPredictions(f"{path} has no rows. Give one row per recording.")
    return table


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        check_cells(path)
        table = pd.read_parquet(path)
    except BadData as error:  # Limits.
        raise ValueError(str(error)) from None
    except (KeyError, TypeError) as error:  # Part of the column metadata written by pandas.
        raise ValueError(f"its pandas metadata is damaged: {error}") from error
    return _indexed_by_place(_with_single_columns(table, path.name))


def _with_single_columns(table: pd.DataFrame, what: str) -> pd.DataFrame:
    """Refuse a table with a repeated column name."""
    repeated = table.columns[table.columns.duplicated()]
    if len(repeated):
        raise BadPredictions(f"{what}: column {first_n(repeated.unique())} occurs twice; remove one of them.")
    return table


def _indexed_by_place(table: pd.DataFrame) -> pd.DataFrame:
    names = [name for name in table.index.names if name is not None and name not in table.columns]
    return (table.reset_index(names) if names else table).reset_index(drop=True)


def _read_csv(path: Path) -> pd.DataFrame:
    if (size := path.stat().st_size) > LONGEST_CSV:
        raise ValueError(f"it has {size:,} bytes, but at most {LONGEST_CSV:,} are allowed")
    content = path.read_bytes()
    encoding = encoding_of(content)
    if encoding == "utf-8-sig" and (zero := content.find(b"\0")) >= 0:
        raise ValueError(f"line {content.count(10, 0, zero) + 1} contains a zero byte")
    with path.open(encoding=encoding, newline="") as file:
        first_line = file.readline()
    separator = separator_of(first_line)
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
    if separator == ";":
        table = table.apply(lambda column: column.map(decimal_point))
    return table


def encoding_of(start: bytes) -> str:
    """Return the encoding of a text from its first bytes: UTF-16 with a byte-order mark, else UTF-8."""
    return "utf-16" if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"


def separator_of(header: str) -> str:
    """Return the delimiter of a CSV: comma, semicolon or tab, whichever is most frequent in its header."""
    return max(_SEPARATORS, key=header.count)


def decimal_point(cell: str) -> str:
    """Replace a decimal comma (`3,5`) by a point; return other texts unchanged."""
    return _DECIMAL_COMMA.sub(r"\1.\2", cell)


def text_of(column: pd.Series) -> pd.Series:
    """Convert cells to text: stripped, whole numbers without a decimal point, "" for null."""
    empty = column.isna()
    if pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_integer_dtype(column.dtype):
        text = column.astype("Int64").astype(str)
    elif pd.api.types.is_float_dtype(column.dtype):
        text = column.map(lambda value: str(int(value)) if np.isfinite(value) and value == int(value) else repr(value))
    else:
        text = column.astype(str).map(str.strip)
    return text.astype(object).mask(empty, "") if empty.any() else text.astype(object)


def numbers_of(column: pd.Series, ids: pd.Series, what: str) -> np.ndarray:
    """Convert cells to float64, with NaN for empty cells; raise for text that is not a number, naming its rows.

    Args:
        column: Cells, (n,).
        ids: The rows' ids, for the message.
        what: Name of the file and column in messages.
    """
    values = column.astype(object).mask(column.isna() | (column.astype(str).map(str.strip) == ""), np.nan)
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
        raise BadPredictions(f"{what}: {len(rows)} of {len(column)} cells are not numbers: {first_n(rows)}.")
    raise BadPredictions(f"{what} has cells that are not numbers. Correct or remove them.")


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
