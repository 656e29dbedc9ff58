"""PTB-XL+ 1.0.1: measurements of the ECGs of PTB-XL by two algorithms, joined to its rows if available."""

import os
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from cardiobench.core.errors import BadData, first_n
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.spec import Group, Task
from cardiobench.data.tables import integer, number, read_columns

FOLDER = "ptb_xl_plus"
TABLES = {"12SL": "features/12sl_features.csv", "Uni-G": "features/unig_features.csv"}
"""Algorithm -> table; the first gives the labels, the second is used for comparison."""
TARGETS = {
    "pr": ("PR_Int_Global", "ms", "PR interval"),
    "qrs": ("QRS_Dur_Global", "ms", "duration of the QRS complex"),
    "qt": ("QT_Int_Global", "ms", "QT interval"),
    "qtc": ("QT_IntBazett_Global", "ms", "QT interval corrected for the rate by Bazett's formula"),
    "heart_rate": ("RR_Mean_Global", "bpm", "heart rate: 60,000 divided by the mean RR interval in ms"),
}
"""Target -> column of both tables (ms), unit and description."""
LIMITS = {"ms": (0.0, 3000.0), "bpm": (0.0, 400.0)}


def interval_tasks(dataset: str, groups: tuple[Group, ...]) -> tuple[Task, ...]:
    """Return the tasks of the five measurements of a dataset; without PTB-XL+ their rows have no labels."""
    return tuple(
        Task(
            f"{dataset}/{target}",
            "regression",
            target,
            ("mae",),
            unit=unit,
            label_range=LIMITS[unit],
            groups=groups,
            description=f"{words}, measured by the algorithm 12SL",
        )
        for target, (_, unit, words) in TARGETS.items()
    )


def find_features(raw: Path) -> Path | None:
    """Return the folder of PTB-XL+, in the raw folder of PTB-XL or next to it; None if there is none."""
    folders = (raw / FOLDER, Path(os.path.realpath(raw)).parent / FOLDER)
    return next((folder for folder in folders if folder.is_dir()), None)


def measurements(folder: Path, algorithm: str = "12SL") -> pd.DataFrame:
    """Return the measurements of an algorithm by ECG number.

    Values that were not found, such as PR in fibrillation, and implausible values outside `LIMITS` are NaN.

    Args:
        folder: Folder of PTB-XL+.
        algorithm: A key of `TABLES`.

    Raises:
        MissingData: The folder has no such table.
        BadData: The table lacks a column or has an ECG twice.
    """
    values = _values(folder, algorithm)
    return values.where(~_impossible(values))


def _values(folder: Path, algorithm: str) -> pd.DataFrame:
    """Return the measurements of an algorithm by ECG number; 0 means "not found"."""
    columns = {column: number(optional=True) for column, _, _ in TARGETS.values()}
    table = read_columns(folder / TABLES[algorithm], {"ecg_id": integer(1), **columns}).set_index("ecg_id")
    if table.index.has_duplicates:
        repeated = table.index[table.index.duplicated()].unique()
        raise BadData(
            f"{folder / TABLES[algorithm]} has {len(repeated)} ECGs more than once: {first_n(repeated)}. Download it again."
        )
    values = pd.DataFrame({target: table[column] for target, (column, _, _) in TARGETS.items()}).astype("float64")
    values = values.where(values != 0)
    return values.assign(heart_rate=60_000 / values["heart_rate"])


def _impossible(values: pd.DataFrame) -> pd.DataFrame:
    """Return which measurements are outside the limits of their unit."""
    limits = {target: LIMITS[unit] for target, (_, unit, _) in TARGETS.items()}
    return pd.DataFrame(
        {target: values[target].notna() & ~values[target].between(*limits[target]) for target in TARGETS}
    )


def audit_findings(folder: Path, dataset: str) -> Iterator[AuditFinding]:
    """Yield implausible measurements of a dataset, and the disagreement of the two algorithms, which limits any model's accuracy."""
    odd = _impossible(_values(folder, "12SL"))
    for target, (_, unit, _) in TARGETS.items():
        names = tuple(f"{number:05d}" for number in odd.index[odd[target]])
        low, high = LIMITS[unit]
        if names:
            yield AuditFinding(
                f"{dataset}/{target}: measurements outside {low:g}-{high:g} {unit}",
                len(names),
                "ECGs",
                names,
                "no labels",
            )
    if not (folder / TABLES["Uni-G"]).is_file():
        return
    one, other = measurements(folder), measurements(folder, "Uni-G")
    for target, (_, unit, _) in TARGETS.items():
        apart = (one[target] - other[target]).abs().dropna()
        note = f"mean absolute difference {apart.mean():.1f} {unit}, median {apart.median():.1f}"
        yield AuditFinding(f"{dataset}/{target}: ECGs also measured by Uni-G", len(apart), "ECGs", note=note)
