"""Select the references of a cell and join them with predictions."""

from dataclasses import replace

import pandas as pd

from cardiobench.core.errors import first_n
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.spec import Task
from cardiobench.scoring.predictions import Predictions


def first_patients(frame: pd.DataFrame, limit: int | None) -> pd.DataFrame:
    """Return the rows of the first `limit` patients of each split, or all rows without a limit."""
    if limit is None:
        return frame
    kept = [list(dict.fromkeys(rows["patient_id"]))[:limit] for _, rows in frame.groupby("split", sort=False)]
    return frame[frame["patient_id"].isin({patient for patients in kept for patient in patients})]


def limited_references(dataset: OpenDataset, task: Task, limit: int | None) -> pd.DataFrame:
    """Return the references of a task; with a limit, only of the first patients with local recordings."""
    references = dataset.references(task)
    if limit is None:
        return references
    patients = first_patients(dataset.task_rows(task), limit)["patient_id"].astype(str)
    return references[references["patient_id"].isin(set(patients))]


def join_references(
    dataset: OpenDataset,
    task: Task,
    predictions: pd.DataFrame,
    *,
    model: str,
    limit: int | None,
    out_of_fold: bool = False,
) -> tuple[Predictions, pd.DataFrame]:
    """Join predictions with references; unreadable recordings reduce the coverage.

    Out-of-fold predictions are scored on their own units in all splits.

    Returns:
        Joined predictions, and references with one row per unit of scoring.
    """
    references = limited_references(dataset, task, limit)
    if out_of_fold:
        references = references[references["id"].isin(predictions["id"])].assign(split="test")
    joined = Predictions.join(references, predictions, task, source=model, allow_missing=True)
    expected = expected_units(dataset, task, references, limit)
    # Out-of-fold units come from all splits, so any incomplete split makes the references incomplete.
    if out_of_fold and not limit:
        expected = len(references) + dataset.absent_units(task) + dataset.unread_units(task)
    return replace(joined, expected=expected, out_of_fold=out_of_fold), references


def expected_units(dataset: OpenDataset, task: Task, references: pd.DataFrame, limit: int | None) -> int:
    """Return the number of test units in the complete release or, with a limit, of the selected patients."""
    return int((references["split"] == "test").sum()) if limit else dataset.expected(task, references)


def data_warnings(dataset: OpenDataset, limit: int | None) -> list[str]:
    """Return remarks on the data."""
    table = dataset.table
    warnings = []
    if table.missing:
        warnings.append(f"{len(table.missing)} files of the release are missing here")
    if table.absent:
        splits = ", ".join(f"{count} {split}" for split, count in table.absent.items())
        warnings.append(f"this copy lists fewer rows than the release (absent: {splits})")
    if dataset.left_out:
        reasons = "; ".join(f"{len(ids)}: {reason}" for reason, ids in table.excluded.items())
        warnings.append(f"{dataset.left_out} rows of the labels are not part of the dataset ({reasons})")
    if dataset.duplicates:
        pairs = first_n(" = ".join(group) for group in dataset.duplicates)
        warnings.append(f"byte-identical recordings: {pairs}")
    if dataset.masked:
        warnings.append("text and graphics in the images were blackened (--overlays mask)")
    if limit:
        warnings.append(f"only the first {limit} patients of each split were used")
    return warnings
