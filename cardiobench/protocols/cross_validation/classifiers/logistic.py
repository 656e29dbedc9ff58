"""Logistic regression on standardised features; all splits and penalties are fitted together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cardiobench.protocols.cross_validation.folds import Split
from cardiobench.protocols.cross_validation.grids import Point
from cardiobench.protocols.linear.logistic import SEARCH_TOLERANCE, TOLERANCE, LogisticPath, logistic_path

BLOCK = 20_000_000  # numbers of the states of the splits that are fitted together


@dataclass(frozen=True)
class Logistic:
    """A trained model.

    Attributes:
        path: of one fold and one penalty.
    """

    path: LogisticPath

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """Class probabilities, (n, classes)."""
        return self.path.probabilities(features)[0, 0]

    @property
    def coefficients(self) -> np.ndarray:
        """Of the logits, in the units of the features, (outputs, d); one output for two classes."""
        return self.path.coefficients[0, 0]


def answers(
    features: np.ndarray, labels: np.ndarray, splits: Sequence[Split], points: Sequence[Point], seed: int
) -> list[np.ndarray]:
    """Probabilities of the held-out lines of each split, (points, held, classes); of several points, good enough to choose by."""
    tolerance = SEARCH_TOLERANCE if len(points) > 1 else TOLERANCE
    classes = int(labels.max()) + 1
    penalties = np.array([1 / point["C"] for point in points])
    step = max(1, BLOCK // (features.shape[1] * len(points)))
    found = []
    for start in range(0, len(splits), step):
        part = splits[start : start + step]
        learned = np.zeros((len(part), len(labels)))
        for fold, (known, _) in enumerate(part):
            learned[fold, known] = 1
        # Splits that share a held-out fold do not learn from it at all, and the solver takes no unused lines.
        used = np.flatnonzero(learned.any(axis=0))
        path = logistic_path(
            features[used], labels[used], penalties, folds=learned[:, used], classes=classes, tolerance=tolerance
        )
        found += [_of_fold(path, fold).probabilities(features[held])[0] for fold, (_, held) in enumerate(part)]
    return found


def _of_fold(path: LogisticPath, fold: int) -> LogisticPath:
    one = slice(fold, fold + 1)
    return replace(path, coefficients=path.coefficients[one], intercepts=path.intercepts[one])


def fit(features: np.ndarray, labels: np.ndarray, point: Point, seed: int) -> Logistic:
    """One trained model."""
    return Logistic(logistic_path(features, labels, np.array([1 / point["C"]]), classes=int(labels.max()) + 1))
