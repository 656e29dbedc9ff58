"""Tables that somebody else wrote: CSV or Parquet, with ids that stay text and numbers that keep every digit."""

import csv
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadPredictions, MissingData, first_n
from cardiobench.core.io import write_atomic

_SEPARATORS = ",;\t"


def read_table(path: str | Path) -> pd.DataFrame:
    """A CSV or Parquet file as a data frame.

    The cells of a CSV stay text: `007` is not 7. It may have a byte-order mark, and `,`, `;` or tabs between columns;
    with `;` a comma inside a number is the decimal sign. Parquet keeps its own types.

    Raises:
        MissingData: there is no such file.
        BadPredictions: it is empty, cut off, not UTF-8, or names a column twice.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingData(f"{path} does not exist or is not a file.")
    try:
        table = _read_parquet(path) if path.suffix.lower() in (".parquet", ".pq") else _read_csv(path)
    except UnicodeDecodeError as error:
        raise BadPredictions(f"{path} is not UTF-8 text ({error}). Save it as UTF-8 CSV or as Parquet.") from error
    except (ValueError, OSError, csv.Error, pd.errors.ParserWarning) as error:
        raise BadPredictions(f"{path} cannot be read as a table: {error}") from error
    if table.empty:
        raise BadPredictions(f"{path} has no rows.")
    return table


def _read_parquet(path: Path) -> pd.DataFrame:
    table = pd.read_parquet(path)
    return table.reset_index() if any(name is not None for name in table.index.names) else table


def _read_csv(path: Path) -> pd.DataFrame:
    with path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
    separator = max(_SEPARATORS, key=first.count)
    options = {"sep": separator, "dtype": str, "keep_default_na": False, "encoding": "utf-8-sig"}
    header = pd.read_csv(path, header=None, nrows=1, **options).iloc[0].tolist()
    repeated = {name for name in header if name and header.count(name) > 1}
    if repeated:
        raise ValueError(f"column {first_n(sorted(repeated))} stands twice")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        table = pd.read_csv(path, index_col=False, **options)
    if separator == ";":
        table = table.apply(lambda column: column.str.replace(r"^(\s*[-+]?\d*),(\d+\s*)$", r"\1.\2", regex=True))
    return table


def text_of(column: pd.Series) -> pd.Series:
    """Cells as text: surrounding blanks cut, whole numbers without a decimal point, nothing for null."""
    empty = column.isna()
    if pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_integer_dtype(column.dtype):
        text = column.astype("Int64").astype(str)
    elif pd.api.types.is_float_dtype(column.dtype):
        text = column.map(lambda value: str(int(value)) if np.isfinite(value) and value == int(value) else repr(value))
    else:
        text = column.astype(str).str.strip()
    return text.astype(object).mask(empty, "")


def numbers_of(column: pd.Series, ids: pd.Series, what: str) -> np.ndarray:
    """Cells as float64, NaN for an empty cell; text that is no number is an error naming its rows.

    Args:
        column: cells, (n,).
        ids: the rows' ids, for the message.
        what: how to call the column, file included.
    """
    values = column.astype(object).mask(column.isna() | (column.astype(str).str.strip() == ""), np.nan)
    try:
        return values.to_numpy(dtype=np.float64)
    except (ValueError, TypeError):
        odd = pd.to_numeric(values, errors="coerce").isna() & values.notna()
        rows = [f"{name} ({cell!r})" for name, cell in zip(ids[odd], column[odd], strict=True)]
        raise BadPredictions(f"{what}: {len(rows)} of {len(column)} cells are not numbers: {first_n(rows)}.") from None


def write_csv(table: pd.DataFrame, path: str | Path) -> Path:
    """Write a table as UTF-8 CSV; a reader never sees half a file."""
    return write_atomic(path, lambda partial: table.to_csv(partial, index=False, encoding="utf-8"))


def write_parquet(table: pd.DataFrame, path: str | Path) -> Path:
    """Write a table as Parquet; a reader never sees half a file."""
    return write_atomic(path, lambda partial: table.to_parquet(partial, index=False))
