"""Group of each row of a breakdown: the same for all spellings of a text, and None for implausible numbers."""

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadData
from cardiobench.tasks.task import OLDEST, Group

LARGEST = {"age": OLDEST}
"""Column -> largest plausible value; larger numbers are codes for unknown. All group numbers are non-negative."""


def group_labels(group: Group, frame: pd.DataFrame) -> np.ndarray:
    """Label each row with its group, (n,) objects; None if the row's value is unknown.

    Texts that differ in case or surrounding spaces are one group, named by the most frequent spelling. Numbers that are
    infinite, negative or larger than `LARGEST` are unknown.

    Raises:
        BadData: The groups are ranges, and a value is not a number.
    """
    if not group.edges:
        return _one_spelling(frame[group.column])
    values = _numbers(group, frame)
    place = np.digitize(values, group.edges, right=group.right)
    return np.asarray(np.where(values.isna(), None, np.array(group.labels, dtype=object)[place]))


def impossible_values(group: Group, frame: pd.DataFrame) -> pd.Series:
    """Return the implausible numbers of a column, which count as unknown, such as an age of -999; empty for groups of texts."""
    column = frame[group.column]
    return column[_numbers(group, frame).isna() & column.notna()] if group.edges else column[:0]


def _numbers(group: Group, frame: pd.DataFrame) -> pd.Series:
    column = frame[group.column]
    values = pd.to_numeric(column, errors="coerce")
    odd = column[values.isna() & column.notna()]
    if len(odd):
        raise BadData(
            f"group {group.name}: {len(odd)} values of {group.column} are not numbers (first: {odd.iloc[0]!r})."
        )
    largest = LARGEST.get(group.column, np.finfo(np.float64).max)
    return values.astype(np.float64).where((values >= 0) & (values <= largest))


def _one_spelling(column: pd.Series) -> np.ndarray:
    counts = column.astype(object).value_counts()  # Most frequent first; for ties, the alphabetically first.
    names: dict[object, object] = {}
    for value, _ in sorted(counts.items(), key=lambda item: (-item[1], str(item[0]))):
        if text := str(value).strip():
            names.setdefault(_folded(value), text if isinstance(value, str) else value)
    labels = {value: names.get(_folded(value)) for value in counts.index}
    found = np.empty(len(column), dtype=object)  # Whole numbers among unknown values stay whole.
    found[:] = [labels.get(value) for value in column.astype(object)]
    return found


def _folded(value: object) -> object:
    return value.strip().casefold() if isinstance(value, str) else value
