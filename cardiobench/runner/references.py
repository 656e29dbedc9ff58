"""The references that a cell is scored against: those of the patients that take part, joined with the predictions."""

from dataclasses import replace

import pandas as pd

from cardiobench.core.errors import first_n
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.spec import Task
from cardiobench.scoring.predictions import Predictions


def first_patients(frame: pd.DataFrame, limit: int | None) -> pd.DataFrame:
    """Return the rows of the first `limit` patients of each split; all rows when there is no limit."""
    if limit is None:
        return frame
    kept = [list(dict.fromkeys(rows["patient_id"]))[:limit] for _, rows in frame.groupby("split", sort=False)]
    return frame[frame["patient_id"].isin({patient for patients in kept for patient in patients})]


def limited_references(dataset: OpenDataset, task: Task, limit: int | None) -> pd.DataFrame:
    """Return the references of a task, of the patients that take part where there is a limit: the first with a recording here."""
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
    """Join predictions with their references; recordings that could not be read lower the coverage.

    Out-of-fold predictions are scored on the very units that they are about, whatever their split.

    Returns:
        The joined predictions, and the references, one row per unit of scoring.
    """
    references = limited_references(dataset, task, limit)
    if out_of_fold:
        references = references[references["id"].isin(predictions["id"])].assign(split="test")
    joined = Predictions.join(references, predictions, task, source=model, allow_missing=True)
    expected = expected_units(dataset, task, references, limit)
    if out_of_fold and not limit:  # Drawn from all splits, so any incomplete split makes the references incomplete.
        expected = len(references) + dataset.absent_units(task) + dataset.unread_units(task)
    return replace(joined, expected=expected, out_of_fold=out_of_fold), references


def expected_units(dataset: OpenDataset, task: Task, references: pd.DataFrame, limit: int | None) -> int:
    """Return the number of test units of the complete release, or with a limit those of the patients that take part."""
    return int((references["split"] == "test").sum()) if limit else dataset.expected(task, references)


def data_warnings(dataset: OpenDataset, limit: int | None) -> list[str]:
    """Return the remarks on the data itself."""
    table = dataset.table
    warnings = []
    if table.missing:
        warnings.append(f"{len(table.missing)} files of the release are missing here")
    if table.absent:
        splits = ", ".join(f"{count} {split}" for split, count in table.absent.items())
        warnings.append(f"this copy lists fewer rows than the release (absent: {splits})")
    if dataset.duplicates:
        pairs = first_n(" = ".join(group) for group in dataset.duplicates)
        warnings.append(f"byte-identical recordings: {pairs}")
    if dataset.masked:
        warnings.append("text and graphics in the images were blackened (--overlays mask)")
    if limit:
        warnings.append(f"only the first {limit} patients of each split were used")
    return warnings
