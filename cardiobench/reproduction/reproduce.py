"""All tables of a folder of predictions and truths, under one profile."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import CardioBenchError, MissingData
from cardiobench.core.tables import write_csv
from cardiobench.data.spec import VIEWS
from cardiobench.reproduction.join import Joined, join, read_truth
from cardiobench.reproduction.profiles import Profile
from cardiobench.reproduction.sheet import Grouping, TableSpec
from cardiobench.reproduction.sheets import SHEETS
from cardiobench.reproduction.tables import point, summary
from cardiobench.scoring.bootstrap import RESAMPLES

SPLITS, PREDICTIONS = "splits", "example_predictions"


@dataclass
class Tables:
    """What came of a folder.

    Attributes:
        frames: file below the output folder -> its table.
        notes: (dataset and prediction file, sentence) for the reader of the numbers.
        absent: predictions or truths that are not in the folder, one line a table.
        failures: (prediction file, reason) of what could not be scored.
    """

    frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)

    def save(self, folder: Path) -> list[Path]:
        """Write the tables; returns the files."""
        return [write_csv(frame, folder / file) for file, frame in sorted(self.frames.items())]


def reproduce(
    inputs: Path, profile: Profile, resamples: int = RESAMPLES, sheets: Sequence[TableSpec] = SHEETS
) -> Tables:
    """Every table that a folder has predictions and truth for.

    Args:
        inputs: holds `splits/` and `example_predictions/`, laid out as the published evaluator's.
        profile: as published, or by patient.
        resamples: B; the published evaluator takes 1000.
        sheets: which tables; all of them by default.

    Raises:
        MissingData: it holds none of them.
    """
    made, rows = Tables(), {}
    for sheet in sheets:
        for file, row in _rows(sheet, inputs, profile, made, resamples):
            rows.setdefault(file, []).append(row)
    if not rows and not made.failures:
        raise MissingData(
            f"{inputs} has neither {SPLITS}/ with {SHEETS[0].truth.files[0]} nor another pair of truth and predictions "
            f"({PREDICTIONS}/{SHEETS[0].predictions}/*.csv)."
        )
    by = {sheet.file: ["target", "model"] if sheet.target else ["model"] for sheet in SHEETS}
    by |= {sheet.per_class: ["model"] for sheet in SHEETS if sheet.per_class}
    for file, found in rows.items():
        frame = pd.DataFrame(found)
        made.frames[file] = frame.sort_values(by[file]) if file in by else frame
    return made


def _rows(sheet: TableSpec, inputs: Path, profile: Profile, made: Tables, resamples: int) -> Iterator[tuple[str, dict]]:
    """Each row with the file it belongs to; what cannot be had is noted."""
    paths = sorted((inputs / PREDICTIONS / sheet.predictions).glob("*.csv"))
    lacking = [file for file in sheet.truth.files if not (inputs / SPLITS / file).is_file()]
    if not paths or lacking:
        what = f"{SPLITS}/{lacking[0]}" if lacking else f"{PREDICTIONS}/{sheet.predictions}/*.csv"
        made.absent.append(f"{sheet.predictions}: no {what}")
        return
    for path in paths:
        name = f"{sheet.predictions}/{path.name}"
        chosen = sheet.by_name(sheet, path.stem)
        if isinstance(chosen, str):
            made.notes.append((name, chosen))
            continue
        try:
            joined = join(chosen, read_truth(chosen, inputs / SPLITS, profile), path, profile)
        except CardioBenchError as error:
            made.failures.append((name, str(error)))
            continue
        made.notes += [(name, note) for note in joined.notes]
        yield from _file_rows(chosen, path.stem, joined, profile, resamples)
        for grouping in chosen.groups if profile.as_published else ():
            for label, why in grouping.lost.items():
                count = int((joined.groups[grouping.group.name] == label).sum())
                if count:
                    made.notes.append(
                        (name, f"the {count} rows of {grouping.group.name} {label} are not reported: {why}")
                    )


def _file_rows(
    sheet: TableSpec, model: str, joined: Joined, profile: Profile, resamples: int
) -> Iterator[tuple[str, dict]]:
    """Rows of all tables that one prediction file has a row in."""
    row = {"target": sheet.target} if sheet.target else {}
    row |= {"model": model, "n": len(joined.sample)}
    row |= summary(sheet.kind, joined.sample, joined.patients, profile, resamples)
    if not profile.as_published:
        row |= {"patients": len(set(joined.patients)), "expected": joined.expected}
    yield sheet.file, row
    if sheet.kind == "view":
        yield sheet.counted, {"model": model, **{view: list(joined.counted).count(view) for view in VIEWS}}
        yield sheet.per_class, per_class_accuracy(joined, profile) | {"model": model}
    for grouping in sheet.groups:
        yield from ((sheet.groups_file, line) for line in breakdown(grouping, model, joined, profile))


def per_class_accuracy(joined: Joined, profile: Profile) -> dict[str, float]:
    """Share of right answers in all rows and among the rows of each true view, in percent, with their counts."""
    truth, right = joined.sample.y_true, joined.sample.y_true == joined.sample.y_pred

    def percent(chosen: np.ndarray) -> float:
        share = chosen.mean() * 100
        return round(share, 2) if profile.as_published else share

    columns = {"Acc_overall_GTonly(%)": percent(right), "n_overall_GTonly": len(truth)}
    for code in np.unique(truth):
        rows = truth == code
        columns |= {f"Acc_{VIEWS[code]}(%)": percent(right[rows]), f"n_{VIEWS[code]}": int(rows.sum())}
    return columns


EMPTY = ("R2", "Pearson_r", "Spearman_rho")  # columns that the published table has and never fills


def breakdown(grouping: Grouping, model: str, joined: Joined, profile: Profile) -> list[dict]:
    """A row a group, and one with the largest difference between two groups in every number."""
    labels = joined.groups[grouping.group.name]
    reported = [label for label in grouping.reported if not (profile.as_published and label in grouping.lost)]
    found, sizes = [], []
    for label in reported:
        rows = np.flatnonzero(labels == label)
        if len(rows):
            found.append(point("regression", joined.sample.take(rows), profile))
            sizes.append((label, len(rows)))
    if not found:
        return []
    shared = {"model": model, "grouping": grouping.group.name}
    gaps = {f"delta {column.replace('R2(%)', 'R2')}": _gap([row[column] for row in found]) for column in found[0]}
    blank = dict.fromkeys([*found[0]], np.nan), dict.fromkeys([*gaps, *EMPTY], np.nan)
    lines = [
        {**row, **shared, "group": label, "n": n, "delta_row": False, **blank[1]}
        for row, (label, n) in zip(found, sizes, strict=True)
    ]
    total = sum(n for _, n in sizes)
    gap = {**shared, "group": "delta(max−min)", "n": total, "delta_row": True}
    return [*lines, {**blank[0], **gap, **gaps, **dict.fromkeys(EMPTY, np.nan)}]


def _gap(values: list[float]) -> float:
    defined = [value for value in values if not np.isnan(value)]
    return max(defined) - min(defined) if defined else np.nan
