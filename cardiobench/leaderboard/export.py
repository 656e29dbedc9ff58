"""Export the tables of a suite with unrounded numbers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from cardiobench.core.tables import write_csv, write_parquet
from cardiobench.leaderboard import table
from cardiobench.leaderboard.boards import Standing
from cardiobench.results.collect import Collection

COST = ("parameters", "flops", "width", "bytes")


def export_table(collection: Collection) -> pd.DataFrame:
    """Return one row per result, by task, condition and place."""
    return pd.DataFrame(list(_rows(collection)))


def write_downloads(collection: Collection, folder: Path) -> dict[str, str]:
    """Write the table as CSV and Parquet to a folder and return the paths."""
    frame = export_table(collection)
    return {
        "CSV": str(write_csv(frame, folder / "leaderboard.csv")),
        "Parquet": str(write_parquet(frame, folder / "leaderboard.parquet")),
    }


def _rows(collection: Collection) -> Iterator[dict[str, Any]]:
    for task in table.tasks_of(collection.entries):
        for one in table.board(collection, task):
            yield _row(one)


def _row(one: Standing) -> dict[str, Any]:
    entry, result = one.entry, one.entry.result
    score, cost = result.score, result.cost
    return {
        "task": result.task,
        "condition": one.condition,
        "place_first": one.place.first if one.place else None,
        "place_last": one.place.last if one.place else None,
        "groups": one.place.letters if one.place else None,
        "model": str(result.model["name"]),
        "revision": str(result.model.get("revision") or ""),
        "protocol": result.label,
        "metric": result.metric,
        "unit": result.unit,
        "higher_is_better": result.higher_is_better,
        **{name: getattr(score, name) for name in ("value", "low", "high", "se", "n", "n_patients")},
        "floor": result.floor.value,
        "verdict": str(result.verdict.word),
        "p_adjusted": result.verdict.p_adjusted,
        "scored": result.scored,
        "expected": result.expected,
        **{name: None if cost is None else getattr(cost, name) for name in COST},
        "seen_in_pretraining": result.seen_in_pretraining,
        "dataset_version": str(result.dataset.get("version") or ""),
        "pushed_by": entry.pushed_by,
        "submissions": entry.submissions,
        "date": entry.date,
    }
