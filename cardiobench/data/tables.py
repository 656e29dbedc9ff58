"""Reading a release's own tables: columns by name, a missing one named with its nearest neighbour."""

import difflib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadData, MissingData


def read_table(path: Path, needed: Sequence[str], **options) -> pd.DataFrame:
    """Read a CSV of a release as a data frame.

    Args:
        path: the file.
        needed: columns that must be there.
        options: passed to `pandas.read_csv`.

    Raises:
        MissingData: there is no such file.
        BadData: it is empty or lacks a column; the nearest existing column is named.
    """
    if not path.is_file():
        raise MissingData(f"{path.name} is not in {path.parent}. Complete the download or check --data-dir.")
    try:
        table = pd.read_csv(path, encoding="utf-8-sig", **options)
    except pd.errors.EmptyDataError:
        raise BadData(f"{path} is empty. Download it again.") from None
    except (pd.errors.ParserError, UnicodeDecodeError) as error:
        raise BadData(f"{path} cannot be read as a CSV ({error}). Download it again.") from None
    absent = [column for column in needed if column not in table.columns]
    if absent:
        near = difflib.get_close_matches(absent[0], map(str, table.columns), n=1, cutoff=0.4)
        hint = f" The nearest is '{near[0]}'." if near else ""
        raise BadData(
            f"{path} has no column {', '.join(repr(c) for c in absent)}; it has {', '.join(map(str, table.columns))}.{hint}"
        )
    return table


def numbers(table: pd.DataFrame, column: str, key: str, path: Path, *, empty: bool = False) -> pd.Series:
    """Return a column of a release as float64.

    Args:
        table: the release's table.
        column: which.
        key: column that names a row in messages.
        path: file that the table came from, for messages.
        empty: accept cells without a value, which become NaN.

    Raises:
        BadData: text that is no number, an infinite number, or an empty cell where none may be.
    """
    values = pd.to_numeric(table[column], errors="coerce").astype("float64")
    bad = ~np.isfinite(values) & ~(table[column].isna() & empty)
    if bad.any():
        first = table[bad].iloc[0]
        raise BadData(
            f"{path}: {int(bad.sum())} of {len(table)} rows have no number in column '{column}'; "
            f"the first is {first[key]} with {first[column]!r}. Mend the row or download the file again."
        )
    return values
