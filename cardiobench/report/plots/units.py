"""Show scores of analyses in the units of the tables of results: shares in percent, measurements in their unit."""

import pandas as pd
from pandas.api.types import is_numeric_dtype

from cardiobench.metrics.load import find_number

SCORES = ("score", "low", "high", "floor", "change", "loss", "difference")
"""Columns with values of the metric, also with the endings `_low` and `_high`."""


def shown_scores(table: pd.DataFrame, scored_by: pd.Series) -> tuple[pd.DataFrame, str]:
    """Return a table with scores in displayed units, and the label of their axis.

    Args:
        table: Table with any of the columns `SCORES`.
        scored_by: Row with the metric's key, the unit of the task's label and, if it is known, the better direction
            ("higher" or "lower").
    """
    number = find_number(str(scored_by["metric"]))
    names = {f"{name}{end}" for name in SCORES for end in ("", "_low", "_high")}
    chosen = [name for name in table.columns if name in names and is_numeric_dtype(table[name])]
    unit = number.shown_unit(scored_by["unit"] if isinstance(scored_by["unit"], str) else "")
    label = f"{scored_by['metric']} ({unit})" if unit else str(scored_by["metric"])
    better = scored_by.get("better")
    return table.assign(**{name: number.factor * table[name] for name in chosen}), (
        f"{label}, {better} is better" if isinstance(better, str) else label
    )
