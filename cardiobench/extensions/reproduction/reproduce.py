"""Compute all tables of an input folder under one profile."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.core.config import RESAMPLES
from cardiobench.core.errors import CardioBenchError, MissingData
from cardiobench.core.tables import write_csv
from cardiobench.data.spec import VIEWS
from cardiobench.extensions.reproduction.join import Joined, join, read_truth
from cardiobench.extensions.reproduction.profiles import Profile
from cardiobench.extensions.reproduction.table_spec import Grouping, TableSpec
from cardiobench.extensions.reproduction.table_specs import TABLE_SPECS
from cardiobench.extensions.reproduction.tables import point, summary

SPLITS, PREDICTIONS = "splits", "example_predictions"


@dataclass
class Tables:
    """Tables of an input folder, with notes on missing ones.

    Attributes:
        frames: Mapping from path below the output folder to table.
        notes: Pairs of (dataset and prediction file, sentence) for readers.
        absent: Missing predictions or truth files, one line per table.
        failures: Pairs of (prediction file, reason) for scoring failures.
    """

    frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)

    def save(self, folder: Path) -> list[Path]:
        """Write the tables and return their paths."""
        return [write_csv(frame, folder / file) for file, frame in sorted(self.frames.items())]


def reproduce(
    inputs: Path, profile: Profile, resamples: int = RESAMPLES, specs: Sequence[TableSpec] = TABLE_SPECS
) -> Tables:
    """Reproduce every table with predictions and truth in the folder.

    Args:
        inputs: Folder with `splits/` and `example_predictions/`, in the layout of the published evaluator.
        profile: Evaluation profile.
        resamples: Number of bootstrap resamples; the published evaluator uses 1000.
        specs: Table specifications; by default all.

    Raises:
        MissingData: The folder has no predictions with truth.
    """
    tables = Tables()
    rows: dict[str, list[dict[str, Any]]] = {}
    for spec in specs:
        for file, row in _rows(spec, inputs, profile, tables, resamples):
            rows.setdefault(file, []).append(row)
    if not rows and not tables.failures:
        raise MissingData(
            f"{inputs} has neither {SPLITS}/ with {TABLE_SPECS[0].truth.files[0]} nor another pair of truth and predictions "
            f"({PREDICTIONS}/{TABLE_SPECS[0].predictions}/*.csv)."
        )
    by = {spec.file: ["target", "model"] if spec.target else ["model"] for spec in TABLE_SPECS}
    by |= {spec.per_class: ["model"] for spec in TABLE_SPECS if spec.per_class}
    for file, lines in rows.items():
        frame = pd.DataFrame(lines)
        tables.frames[file] = frame.sort_values(by[file]) if file in by else frame
    return tables


def _rows(
    spec: TableSpec, inputs: Path, profile: Profile, tables: Tables, resamples: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield rows and their files, noting unavailable rows."""
    paths = sorted((inputs / PREDICTIONS / spec.predictions).glob("*.csv"))
    lacking = [file for file in spec.truth.files if not (inputs / SPLITS / file).is_file()]
    if not paths or lacking:
        what = f"{SPLITS}/{lacking[0]}" if lacking else f"{PREDICTIONS}/{spec.predictions}/*.csv"
        tables.absent.append(f"{spec.predictions}: no {what}")
        return
    for path in paths:
        name = f"{spec.predictions}/{path.name}"
        chosen = spec.by_name(spec, path.stem)
        if isinstance(chosen, str):
            tables.notes.append((name, chosen))
            continue
        try:
            joined = join(chosen, read_truth(chosen, inputs / SPLITS, profile), path, profile)
        except CardioBenchError as error:
            tables.failures.append((name, str(error)))
            continue
        tables.notes += [(name, note) for note in joined.notes]
        yield from _file_rows(chosen, path.stem, joined, profile, resamples)
        for grouping in chosen.groups if profile.as_published else ():
            for label, why in grouping.lost.items():
                count = int((joined.groups[grouping.group.name] == label).sum())
                if count:
                    tables.notes.append(
                        (name, f"the {count} rows of {grouping.group.name} {label} are not reported: {why}")
                    )


def _file_rows(
    spec: TableSpec, model: str, joined: Joined, profile: Profile, resamples: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of all tables for one prediction file."""
    row: dict[str, Any] = {"target": spec.target} if spec.target else {}
    row |= {"model": model, "n": len(joined.sample)}
    row |= summary(spec.kind, joined.sample, joined.patients, profile, resamples)
    if not profile.as_published:
        row |= {"patients": len(set(joined.patients)), "expected": joined.expected}
    yield spec.file, row
    if spec.kind == "view":
        yield spec.counted, {"model": model, **{view: list(joined.counted).count(view) for view in VIEWS}}
        yield spec.per_class, per_class_accuracy(joined, profile) | {"model": model}
    for grouping in spec.groups:
        yield from ((spec.groups_file, line) for line in breakdown(grouping, model, joined, profile))


def per_class_accuracy(joined: Joined, profile: Profile) -> dict[str, float]:
    """Compute accuracy in percent over all rows and by true view, with counts."""
    truth, right = joined.sample.y_true, joined.sample.y_true == joined.sample.y_pred

    def percent(chosen: np.ndarray) -> float:
        share = chosen.mean() * 100
        return round(share, 2) if profile.as_published else share

    columns = {"Acc_overall_GTonly(%)": percent(right), "n_overall_GTonly": len(truth)}
    for code in np.unique(truth):
        rows = truth == code
        columns |= {f"Acc_{VIEWS[code]}(%)": percent(right[rows]), f"n_{VIEWS[code]}": int(rows.sum())}
    return columns


EMPTY = ("R2", "Pearson_r", "Spearman_rho")  # Columns that the published table contains but never fills.


def breakdown(grouping: Grouping, model: str, joined: Joined, profile: Profile) -> list[dict]:
    """Return one row per subgroup, and one with the largest difference between subgroups for every score."""
    labels = joined.groups[grouping.group.name]
    reported = [label for label in grouping.reported if not (profile.as_published and label in grouping.lost)]
    numbers, sizes = [], []
    for label in reported:
        rows = np.flatnonzero(labels == label)
        if len(rows):
            numbers.append(point("measurement", joined.sample.take(rows), profile))
            sizes.append((label, len(rows)))
    if not numbers:
        return []
    shared = {"model": model, "grouping": grouping.group.name}
    gaps = {f"delta {column.replace('R2(%)', 'R2')}": _gap([row[column] for row in numbers]) for column in numbers[0]}
    blank = dict.fromkeys([*numbers[0]], np.nan), dict.fromkeys([*gaps, *EMPTY], np.nan)
    lines = [
        {**row, **shared, "group": label, "n": n, "delta_row": False, **blank[1]}
        for row, (label, n) in zip(numbers, sizes, strict=True)
    ]
    total = sum(n for _, n in sizes)
    gap = {**shared, "group": "delta(max−min)", "n": total, "delta_row": True}
    return [*lines, {**blank[0], **gap, **gaps, **dict.fromkeys(EMPTY, np.nan)}]


def _gap(values: list[float]) -> float:
    defined = [value for value in values if not np.isnan(value)]
    return max(defined) - min(defined) if defined else np.nan
