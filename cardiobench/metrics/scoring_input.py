"""Rows to be scored, in the input format of metrics."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ScoringInput:
    """Rows to be scored: true values and answers.

    Attributes:
        y_true: Measured values or class codes in the task's class order, (n,); for a multilabel task 1, 0, or NaN for
            unmeasured labels, (n, K).
        y_pred: Answers in the same form, (n,); for a multilabel task 1 for each predicted class, else 0, (n, K).
        probabilities: Probabilities in the task's class order, (n, K); None if the model gave none.
        classes: Number of classes, K, if answers can be outside of them: `y_pred` is then K for an answer outside, and
            the probabilities of a row sum to at most 1. None if all answers are classes.
    """

    y_true: np.ndarray
    y_pred: np.ndarray
    probabilities: np.ndarray | None = None
    classes: int | None = None

    def __len__(self) -> int:
        return len(self.y_true)

    @property
    def multilabel(self) -> bool:
        """Return whether a row can have several classes."""
        return self.y_true.ndim == 2

    @property
    def scores(self) -> np.ndarray:
        """Scores for ranking the rows, (n, K): the probabilities, or the answers if there are no probabilities."""
        return self.y_pred if self.probabilities is None else self.probabilities

    def outcomes(self, classes: int) -> int:
        """Return the number of different answers: K, and one more if answers can be outside the classes."""
        return classes if self.classes is None else classes + 1

    def present_classes(self, classes: int) -> np.ndarray:
        """Return which classes occur. The array is bool (K,); a multilabel task also needs a row without the class."""
        if self.multilabel:
            return np.asarray((self.y_true == 1).any(axis=0) & (self.y_true == 0).any(axis=0), dtype=bool)
        return np.bincount(self.y_true, minlength=classes) > 0 if classes else np.zeros(0, dtype=bool)

    def take(self, rows: np.ndarray) -> "ScoringInput":
        """Select rows, in the given order."""
        probabilities = None if self.probabilities is None else self.probabilities[rows]
        return ScoringInput(self.y_true[rows], self.y_pred[rows], probabilities, self.classes)

    def take_classes(self, chosen: np.ndarray) -> "ScoringInput":
        """Select the classes of a multilabel task that are true in a bool array (K,)."""
        probabilities = None if self.probabilities is None else self.probabilities[:, chosen]
        return ScoringInput(self.y_true[:, chosen], self.y_pred[:, chosen], probabilities)
