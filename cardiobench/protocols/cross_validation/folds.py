"""Folds in which no patient stands on both sides, and both classes stand in every one."""

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from cardiobench.core.errors import NotApplicable

Split = tuple[np.ndarray, np.ndarray]
"""Positions to fit on, and positions held out."""


def balanced_folds(
    labels: np.ndarray, patients: np.ndarray, count: int, seed: int, *, grouped: bool = True
) -> list[Split]:
    """Class-balanced folds.

    Args:
        labels: class codes, (n,).
        patients: of each line, (n,).
        count: of folds.
        seed: of the shuffle.
        grouped: keep all lines of a patient in one fold; without it a patient's other records give the answer away.

    Raises:
        NotApplicable: a class has too few lines, or too few patients, for every fold to hold it.
    """
    if grouped:
        splitter = StratifiedGroupKFold(count, shuffle=True, random_state=seed)
    else:
        splitter = StratifiedKFold(count, shuffle=True, random_state=seed)
    for code in np.unique(labels):
        have = len(np.unique(patients[labels == code])) if grouped else int((labels == code).sum())
        if have < count:
            raise NotApplicable(
                f"{count} folds need {count} {'patients' if grouped else 'records'} a class, got {have}"
            )
    splits = list(splitter.split(labels, labels, patients if grouped else None))
    classes = len(np.unique(labels))
    if any(len(np.unique(labels[part])) < classes for split in splits for part in split):
        raise NotApplicable(f"{count} patient-grouped folds of {len(labels)} records do not all hold every class")
    return splits
