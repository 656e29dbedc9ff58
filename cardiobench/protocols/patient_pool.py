"""Random subsets of the training patients."""

import numpy as np

from cardiobench.protocols.base import TaskData


class PatientPool:
    """The recordings that patients are drawn from, sorted by class once for all draws.

    Attributes:
        size: Patients of the rarest class, of a multilabel task of the most frequent one; of a regression all.
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
        """Draw `size` patients of each class and return their rows of that class; of a regression all rows of `size` patients.

        Of a multilabel task all rows of the drawn patients, which are all patients of a class where fewer have it.
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
