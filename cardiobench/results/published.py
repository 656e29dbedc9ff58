"""Scores that others published, with their source; they travel with the package as they were printed."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).parent / "published_tables"
FILES = ("echo_tables.csv", "ecg_tables.csv", "ecg_benchmarks.csv")
FOLDS = "f1_median_15fold_size_"


@dataclass(frozen=True)
class PublishedScore:
    """One printed number.

    Attributes:
        task: `<dataset>/<target>`; the target alone where the number is of several datasets.
        model: as the paper calls it.
        protocol: of this benchmark that it answers to; `fine-tuned` and `supervised` where the whole network was trained.
        metric: of this benchmark where there is one; `f1_median` is the median F1 of 15 folds.
        value: a fraction, or in the label's unit.
        source: paper and table.
        printed: the value as printed there.
        percent: whether it is printed in percent.
        condition: what else it depends on, such as the size of the sample.
    """

    task: str
    model: str
    protocol: str
    metric: str
    value: float
    source: str
    printed: str
    percent: bool = False
    condition: str = ""

    @property
    def decimals(self) -> int:
        """Digits after the point, as printed."""
        return len(self.printed.partition(".")[2])


def published_scores(task: str | None = None) -> tuple[PublishedScore, ...]:
    """Return the published scores of a task, in the order of the papers' tables; of all tasks when None."""
    return tuple(row for row in _all() if task in (None, row.task))


@cache
def _all() -> tuple[PublishedScore, ...]:
    frames = [pd.read_csv(FOLDER / file, dtype=str, keep_default_na=False) for file in FILES]
    return tuple(_row(row) for frame in frames for row in frame.itertuples())


def _row(row) -> PublishedScore:
    percent = row.metric.endswith("_pct")
    metric, condition = row.metric.removesuffix("_pct"), getattr(row, "condition", "")
    if metric.startswith(FOLDS):
        metric, condition = "f1_median", f"15 folds, size {metric.removeprefix(FOLDS)}"
    value = float(row.value) / (100 if percent else 1)
    return PublishedScore(row.task, row.model, row.protocol, metric, value, row.source, row.value, percent, condition)
