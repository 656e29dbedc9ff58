"""Random subsets of the training patients."""

from collections.abc import Sequence

import numpy as np

from cardiobench.protocols.base import TaskData


class PatientPool:
    """Recordings that patients are drawn from, sorted by class once for all draws.

    Attributes:
        size: Patients of the rarest class, for a multilabel task of the most frequent one, for a regression of all.
    """

    def __init__(self, data: TaskData, rows: np.ndarray):
        """Sort the recordings at some positions of `data` by class."""
        self._rows, self._several = rows, data.task.rules.answer == "labels"
        self._codes = data.patient_codes[rows]
        labels = data.labels[rows]
        if self._several:
            self._of_class = [np.flatnonzero(column == 1) for column in labels.T]
        elif data.task.classes:
            self._of_class = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        else:
            self._of_class = [np.arange(len(rows))]
        self._patients = [np.unique(self._codes[rows]) for rows in self._of_class]
        self.size = (max if self._several else min)(len(patients) for patients in self._patients)

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Draw `size` patients of each class and return their rows of that class; for a regression all rows of `size` patients.

        For a multilabel task, return all rows of the drawn patients; if fewer have a class, all of its patients are
        drawn.
        """
        drawn = [rng.choice(patients, min(size, len(patients)), replace=False) for patients in self._patients]
        if self._several:
            return self._rows[np.isin(self._codes, np.concatenate(drawn))]
        return np.concatenate(
            [
                self._rows[rows[np.isin(self._codes[rows], patients)]]
                for rows, patients in zip(self._of_class, drawn, strict=True)
            ]
        )


def nested_subsets(
    data: TaskData, rows: np.ndarray, shares: Sequence[float], rng: np.random.Generator
) -> list[np.ndarray]:
    """Draw nested random subsets of the patients and return all of their rows.

    Draws are stratified by class; a patient with several classes counts for the rarest one. Patients of a regression or
    a multilabel task are drawn without strata.

    Args:
        data: Recordings of the task.
        rows: Rows whose patients are drawn from.
        shares: Fractions of the patients, above 0 and at most 1.
        rng: Generator.
    """
    codes, patient_of_row = np.unique(data.patient_codes[rows], return_inverse=True)
    strata = np.zeros(len(codes), dtype=np.int64)
    if data.task.rules.answer == "class":
        labels = data.labels[rows]
        rarity = np.argsort(np.argsort(-np.bincount(labels), kind="stable"))
        np.maximum.at(strata, patient_of_row, rarity[labels])
    place = np.empty(len(codes))
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        place[rng.permutation(members)] = (np.arange(len(members)) + 0.5) / len(members)
    return [rows[(place <= share)[patient_of_row]] for share in shares]


def two_of_each(data: TaskData, rows: np.ndarray, among: np.ndarray) -> bool:
    """Return whether some rows have two patients of each class that has two among other rows; for a regression two patients.

    For a multilabel task, two patients must have some class and two must not.
    """
    codes, labels = data.patient_codes, data.labels

    def patients(chosen: np.ndarray) -> int:
        return len(np.unique(codes[chosen]))

    if data.task.rules.answer == "labels":
        columns = labels[rows].T
        return any(min(patients(rows[column == value]) for value in (0, 1)) >= 2 for column in columns)
    if not data.task.classes:
        return patients(rows) >= 2
    wanted = [code for code in np.unique(labels[among]) if patients(among[labels[among] == code]) >= 2]
    return all(patients(rows[labels[rows] == code]) >= 2 for code in wanted)
