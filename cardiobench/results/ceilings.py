"""Human ceilings: how well people agree on a label in other studies, with source, n and setting; none is "the" ceiling."""

from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pandas as pd

from cardiobench.metrics.load import find_number

FILE = Path(__file__).parent / "ceilings.csv"


@dataclass(frozen=True)
class Ceiling:
    """Agreement between people, as a study measured it.

    Attributes:
        metric: of this benchmark where there is one; a fraction, or in the label's unit.
        low: smallest value of the study.
        high: largest value; equal to `low` where there is one.
        n: patients, studies or recordings.
        setting: who was compared with whom, on what.
        source: publication.
    """

    metric: str
    low: float
    high: float
    n: str
    setting: str
    source: str

    @property
    def text(self) -> str:
        """The value, or from the lowest to the highest."""
        number = find_number(self.metric)
        share = number.unit == "fraction"
        low, high = (number.text(value, 1) if share else f"{value:.3g}" for value in (self.low, self.high))
        return (low if low == high else f"{low} to {high}") + " %" * share


def human_ceilings(task: str) -> tuple[Ceiling, ...]:
    """Return the human ceilings of a task, `<dataset>/<target>`; empty where none is known or the recordings are phantoms."""
    if task.startswith("phantom_"):
        return ()
    return tuple(ceiling for patterns, ceiling in _all() if any(fnmatch(task, pattern) for pattern in patterns))


@cache
def _all() -> tuple[tuple[tuple[str, ...], Ceiling], ...]:
    table = pd.read_csv(FILE, dtype={"n": str})
    return tuple(
        (tuple(row.tasks.split()), Ceiling(row.metric, row.low, row.high, row.n, row.setting, row.source))
        for row in table.itertuples()
    )
