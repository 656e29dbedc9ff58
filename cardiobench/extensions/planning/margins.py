"""Margins of metrics: clinical ones with their source, and those that suites predefine."""

from importlib.resources import files
from typing import NamedTuple

import pandas as pd

from cardiobench.scoring.families import margin

NONE_GIVEN = "none given"


class Margin(NamedTuple):
    """Margin of a metric.

    Attributes:
        clinical: What the cited table says: a margin with its meaning, or "none given".
        source: Citation; empty if there is none.
        of_suites: Margin that suites predefine; None if there is none.
    """

    clinical: str
    source: str
    of_suites: float | None


def cited() -> pd.DataFrame:
    """Return the table of cited margins: metric, unit, subject, margin (empty if none is given), meaning and source."""
    text = files(__package__).joinpath("margins.csv")
    with text.open(encoding="utf-8") as file:
        return pd.read_csv(file, keep_default_na=False)


def find_margin(metric: str, unit: str) -> Margin:
    """Return what is known about the margin of a metric."""
    table = cited()
    rows = table[(table["metric"] == metric) & table["unit"].isin([unit, ""])]
    if rows.empty:
        return Margin(NONE_GIVEN, "", margin(metric, unit))
    first = rows.iloc[0]
    meaning = f"{first['margin']} {unit}: {first['meaning']}" if first["margin"] else str(first["meaning"])
    return Margin(meaning, str(first["source"]), margin(metric, unit))
