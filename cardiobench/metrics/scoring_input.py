"""Rows to be scored, in the form in which metrics take them."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ScoringInput:
    """Rows to be scored: true values and answers.

    Attributes:
        y_true: Measured values, or class codes in the task's class order, (n,); of a multilabel task 1, 0, or NaN for
            unmeasured, (n, K).
        y_pred: Answers in the same form, (n,); of a multilabel task 1 for each class that was given, else 0, (n, K).
        probabilities: (n, K) in the task's class order; None where the model gave none.
    """

    y_true: np.ndarray
    y_pred: np.ndarray
    probabilities: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.y_true)

    @property
    def multilabel(self) -> bool:
        """Tell whether a row can have several of the classes."""
        return self.y_true.ndim == 2

    @property
    def scores(self) -> np.ndarray:
        """Scores by which rows are ranked, (n, K): the probabilities, or the answers where there are none."""
        return self.y_pred if self.probabilities is None else self.probabilities

    def present_classes(self, classes: int) -> np.ndarray:
        """Tell which of K classes some row has, bool (K,); of a multilabel task also some row must be without it."""
        if self.multilabel:
            return np.asarray((self.y_true == 1).any(axis=0) & (self.y_true == 0).any(axis=0), dtype=bool)
        return np.bincount(self.y_true, minlength=classes) > 0 if classes else np.zeros(0, dtype=bool)

    def take(self, rows: np.ndarray) -> "ScoringInput":
        """Take these rows only, in this order."""
        probabilities = None if self.probabilities is None else self.probabilities[rows]
        return ScoringInput(self.y_true[rows], self.y_pred[rows], probabilities)

    def take_classes(self, chosen: np.ndarray) -> "ScoringInput":
        """Take some classes of a multilabel task only, bool (K,)."""
        probabilities = None if self.probabilities is None else self.probabilities[:, chosen]
        return ScoringInput(self.y_true[:, chosen], self.y_pred[:, chosen], probabilities)
