"""Labels of a declared dataset: conversion of the user's table to the rows of the benchmark."""

import re
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadData, CardioBenchError, first_n
from cardiobench.core.tables import numbers_of, read_table, text_of
from cardiobench.data.declared.dataset_file import DeclaredTask, Sex
from cardiobench.data.demographics import OLDEST
from cardiobench.data.tables import EMPTY
from cardiobench.tasks.labels import label_set

_FLAGS = {"1": True, "0": False, "1.0": True, "0.0": False, "true": True, "false": False, "yes": True, "no": False}
_WHOLE = re.compile(r"[0-9]+\.0+")


def read_labels(
    path: Path, *, sheet: str = "", encoding: str = "", faults: list[CardioBenchError] | None = None
) -> pd.DataFrame:
    """Read the table of labels with all cells as text, "" for missing, and `1.0` in a column of whole numbers as `1`.

    Sheet, encoding, faults and `attrs` are those of `read_table`.

    Raises:
        MissingData: There is no such file.
        BadData: The file is not a table.
    """
    table = read_table(path, sheet=sheet, encoding=encoding, faults=faults)
    facts = table.attrs
    table = table.rename(columns=lambda name: str(name).strip())
    table = table.apply(lambda column: cells_of(column))
    table.attrs = facts
    return table


def cells_of(column: pd.Series) -> pd.Series:
    """Return cells as text, with "" for missing ones."""
    texts = text_of(column)
    distinct = set(texts)
    empty = {text for text in distinct if text.strip().lower() in EMPTY}
    filled = distinct - empty
    # Software without nullable integers writes the whole column as 1.0 and 0.0.
    whole = filled and all(_WHOLE.fullmatch(text) for text in filled)
    renamed = {text: text.partition(".")[0] for text in filled} if whole else {}
    return texts.map({**{text: text for text in distinct}, **renamed, **dict.fromkeys(empty, "")})


def need(table: pd.DataFrame, columns: Collection[str], path: Path) -> None:
    """Refuse a table without one of the columns."""
    if absent := [name for name in columns if name not in table]:
        raise BadData(f"{path} has no column {first_n(absent)}; it has {first_n(table.columns, 50)}.")


def measured(column: pd.Series, missing: Collection[str]) -> pd.Series:
    """Return the cells with "" for those that mean "not measured": texts, or numbers equal to one of them."""
    if not missing:
        return column
    numbers = pd.to_numeric(pd.Series(list(missing), dtype=object), errors="coerce").dropna()
    return column.mask(column.isin(list(missing)) | pd.to_numeric(column, errors="coerce").isin(numbers), "")


def target_cells(table: pd.DataFrame, task: DeclaredTask, ids: pd.Series, what: str) -> np.ndarray | list:
    """Return the labels of a task: float64 (n,) with NaN, or a list of n texts with None, for missing ones.

    Args:
        table: Table of `read_labels`.
        task: Task of the labels.
        ids: Ids of the rows, for messages.
        what: Name of the table for messages.

    Raises:
        BadData: Cells are not numbers, or neither 0, 1 nor empty.
    """
    if task.columns is not None:
        return _label_sets(table, task, ids, what)
    cells = measured(table[task.column], task.missing)
    if task.rules.answer == "number":
        values = numbers_of(cells, ids, f"{what}, column '{task.column}'")
        if np.isinf(values).any():
            raise BadData(
                f"{what}, column '{task.column}': {int(np.isinf(values).sum())} cells are infinite. Correct them."
            )
        return values
    return [cell or None for cell in cells]


def flag_cells(column: pd.Series, ids: pd.Series, what: str) -> np.ndarray:
    """Return a column of 1, 0 and NaN for empty cells, (n,) float64; raises `BadData` for other cells."""
    values = column.map(lambda cell: np.nan if cell == "" else _FLAGS.get(cell.lower(), -1)).to_numpy(dtype=np.float64)
    if (odd := values < 0).any():
        shown = [f"{name} ({cell!r})" for name, cell in zip(ids[odd], column[odd], strict=True)]
        raise BadData(
            f"{what}, column '{column.name}': {int(odd.sum())} cells are neither 0, 1 nor empty: {first_n(shown)}."
        )
    return values


def _label_sets(table: pd.DataFrame, task: DeclaredTask, ids: pd.Series, what: str) -> list[str | None]:
    columns = task.columns or ()
    values = np.stack([flag_cells(table[name], ids, what) for name in columns], axis=1)
    empty = np.isnan(values)
    if not task.unmeasured and (partly := empty.any(axis=1) & ~empty.all(axis=1)).any():
        raise BadData(
            f"{what}: {int(partly.sum())} rows have some of {', '.join(columns)} and not others: {first_n(ids[partly])}. "
            "Set unmeasured: true if empty cells mean not measured, or fill them."
        )
    patterns, codes = np.unique(np.where(empty, -1, values), axis=0, return_inverse=True)
    cells = [
        None
        if (row < 0).all()
        else label_set(
            [name for name, value in zip(columns, row, strict=True) if value == 1],
            columns,
            [name for name, value in zip(columns, row, strict=True) if value < 0],
        )
        for row in patterns
    ]
    return [cells[code] for code in codes.ravel()]


def sex_cells(table: pd.DataFrame, sex: Sex) -> list[str | None]:
    """Return F, M or None for each row."""
    return [sex.values.get(cell) for cell in table[sex.column]]


def age_cells(column: pd.Series) -> np.ndarray:
    """Return ages in years, (n,) float64; NaN for cells outside 0 to 120, such as codes for very old patients."""
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    return np.where((values >= 0) & (values <= OLDEST), values, np.nan)
