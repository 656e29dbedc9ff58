"""Load published scores and human ceilings with their sources."""

from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pandas as pd

from cardiobench.results.anchors import Ceiling, PublishedScore

FOLDER = Path(__file__).parent / "tables"
CEILINGS = FOLDER / "ceilings.csv"
FILES = ("echo_tables.csv", "ecg_tables.csv", "ecg_benchmarks.csv")
FOLDS = "f1_median_15fold_size_"


def published_scores(task: str | None = None) -> tuple[PublishedScore, ...]:
    """Return published scores of one task or of all tasks (None), in table order."""
    return tuple(row for row in _scores() if task in (None, row.task))


def human_ceilings(task: str) -> tuple[Ceiling, ...]:
    """Return human ceilings of a task; empty if unknown or if recordings are phantoms."""
    if task.startswith("phantom_"):
        return ()
    return tuple(ceiling for patterns, ceiling in _ceilings() if any(fnmatch(task, pattern) for pattern in patterns))


@cache
def _scores() -> tuple[PublishedScore, ...]:
    frames = [pd.read_csv(FOLDER / file, dtype=str, keep_default_na=False) for file in FILES]
    return tuple(_row(row) for frame in frames for row in frame.itertuples())


def _row(row) -> PublishedScore:
    percent = row.metric.endswith("_pct")
    metric, condition = row.metric.removesuffix("_pct"), getattr(row, "condition", "")
    if metric.startswith(FOLDS):
        metric, condition = "f1_median", f"15 folds, size {metric.removeprefix(FOLDS)}"
    value = float(row.value) / (100 if percent else 1)
    low, high = (float(getattr(row, end, "") or "nan") for end in ("low", "high"))
    return PublishedScore(
        row.task, row.model, row.protocol, metric, value, row.source, row.value, percent, condition, low, high
    )


@cache
def _ceilings() -> tuple[tuple[tuple[str, ...], Ceiling], ...]:
    table = pd.read_csv(CEILINGS, dtype={"n": str})
    return tuple(
        (tuple(row.tasks.split()), Ceiling(row.metric, row.low, row.high, row.n, row.setting, row.source))
        for row in table.itertuples()
    )
