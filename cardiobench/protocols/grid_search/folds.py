"""Cross-validation folds that keep patients together and contain every class."""

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from cardiobench.core.errors import NotApplicable

Split = tuple[np.ndarray, np.ndarray]
"""Indices of the training rows and of the held-out rows."""


def balanced_folds(
    labels: np.ndarray, patients: np.ndarray, n_folds: int, seed: int, *, grouped: bool = True
) -> list[Split]:
    """Return class-stratified folds.

    Args:
        labels: Class codes, (n,).
        patients: Patient of each row, shape (n,).
        n_folds: Number of folds.
        seed: Seed of the shuffle.
        grouped: Whether all rows of a patient stay in one fold; otherwise other records of the patient reveal the
            label.

    Raises:
        NotApplicable: A class has too few rows, or too few patients, for every fold.
    """
    splitter_class = StratifiedGroupKFold if grouped else StratifiedKFold
    splitter = splitter_class(n_folds, shuffle=True, random_state=seed)
    classes = np.unique(labels)
    for code in classes:
        available = len(np.unique(patients[labels == code])) if grouped else int((labels == code).sum())
        if available < n_folds:
            unit = "patients" if grouped else "records"
            raise NotApplicable(f"{n_folds} folds need {n_folds} {unit} per class, got {available}")
    splits = list(splitter.split(labels, labels, patients if grouped else None))
    if any(len(np.unique(labels[part])) < len(classes) for split in splits for part in split):
        raise NotApplicable(f"{n_folds} patient-grouped folds of {len(labels)} records do not all hold every class")
    return splits
