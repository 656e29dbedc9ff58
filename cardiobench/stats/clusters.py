"""Patients as clusters of rows. All resampling in scoring draws patients, not rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd


@dataclass(frozen=True)
class Clusters:
    """Patient of each row.

    Attributes:
        of_row: Patient code of each row, 0 to `count` - 1, (n,).
        count: Number of patients, P.
    """

    of_row: npt.NDArray[np.int64]
    count: int

    @classmethod
    def of(cls, patient_ids: Sequence[object] | np.ndarray) -> "Clusters":
        """Encode patient ids as integers in the order of their first occurrence."""
        codes, names = pd.factorize(np.asarray(patient_ids))
        return cls(codes.astype(np.int64), len(names))

    def __len__(self) -> int:
        return len(self.of_row)

    @property
    def one_row_each(self) -> bool:
        """Return whether every patient has exactly one row."""
        return self.count == len(self.of_row)

    @cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """Number of rows of each patient. The shape is (P,)."""
        return np.bincount(self.of_row, minlength=self.count)

    @property
    def equal(self) -> bool:
        """Return whether all patients have the same number of rows."""
        return self.one_row_each or int(np.ptp(self.rows)) == 0

    @property
    def effective(self) -> float:
        """Return the effective number of patients, (sum n)² / sum n² for n rows per patient.

        Source: Kish, Survey Sampling (1965).
        """
        return self.effective_in(np.ones(len(self), dtype=bool))

    def effective_in(self, rows: np.ndarray) -> float:
        """Return the effective number of patients of some rows, bool (n,); 0 if there are none."""
        sizes = np.bincount(self.of_row[rows], minlength=1).astype(np.float64)
        return float(sizes.sum() ** 2 / max((sizes**2).sum(), 1.0))

    def take(self, rows: np.ndarray) -> "Clusters":
        """Return the clusters of some rows; patients without any of these rows are removed."""
        return Clusters.of(self.of_row[rows])

    def count_in(self, rows: np.ndarray) -> int:
        """Count the patients with at least one of the rows, given as a bool mask (n,) or as indices."""
        return int(np.count_nonzero(np.bincount(self.of_row[rows], minlength=1)))

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Sum values of rows, (n,) or (n, m), by patient. Returns an array (P,) or (P, m)."""
        if values.ndim == 1:
            return np.bincount(self.of_row, values, minlength=self.count)
        return np.stack([np.bincount(self.of_row, column, minlength=self.count) for column in values.T], axis=1)

    def cells(self, codes: np.ndarray, size: int) -> npt.NDArray[np.int64]:
        """Count the rows of each patient with each of the codes 0 to `size` - 1. Returns an array (P, size)."""
        flat = np.bincount(self.of_row * size + codes, minlength=self.count * size)
        return flat.reshape(self.count, size)
