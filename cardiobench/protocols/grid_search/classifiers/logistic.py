"""Logistic regression on standardised features; all splits and penalties are fitted together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cardiobench.protocols.grid_search.folds import Split
from cardiobench.protocols.grid_search.grids import Params
from cardiobench.protocols.linear.logistic import LogisticPath, fold_logistic_path
from cardiobench.protocols.linear.path import SEARCH_TOLERANCE, TOLERANCE

BLOCK = 20_000_000  # Limits the size of the states of splits that are fitted together.


@dataclass(frozen=True)
class Logistic:
    """A trained model.

    Attributes:
        path: Fit of one fold and one penalty.
    """

    path: LogisticPath

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        """Return class probabilities. The shape is (n, classes)."""
        return self.path.probabilities(features)[0, 0]

    @property
    def coefficients(self) -> np.ndarray:
        """Return the coefficients of the logits in the units of the features.

        The shape is (outputs, d); one output for two classes.
        """
        return self.path.coefficients[0, 0]


def predict_proba_grid(
    features: np.ndarray, labels: np.ndarray, splits: Sequence[Split], params: Sequence[Params], seed: int
) -> list[np.ndarray]:
    """Return the probabilities of each split's held-out rows. The shape is (params, valid, classes).

    With several params the fits stop at `SEARCH_TOLERANCE`, which is precise enough for choosing among them.
    """
    tolerance = SEARCH_TOLERANCE if len(params) > 1 else TOLERANCE
    n_classes = int(labels.max()) + 1
    penalties = np.array([1 / point["C"] for point in params])
    step = max(1, BLOCK // (features.shape[1] * len(params)))
    tables = []
    for start in range(0, len(splits), step):
        block = splits[start : start + step]
        weights = np.zeros((len(block), len(labels)))
        for fold, (train, _) in enumerate(block):
            weights[fold, train] = 1
        # Rows that no split learns from are removed, because the solver takes no unused rows.
        used = np.flatnonzero(weights.any(axis=0))
        path = fold_logistic_path(
            features[used], labels[used], penalties, folds=weights[:, used], classes=n_classes, tolerance=tolerance
        )
        tables += [_of_fold(path, fold).probabilities(features[valid])[0] for fold, (_, valid) in enumerate(block)]
    return tables


def _of_fold(path: LogisticPath, fold: int) -> LogisticPath:
    one = slice(fold, fold + 1)
    return replace(path, coefficients=path.coefficients[one], intercepts=path.intercepts[one])


def fit(features: np.ndarray, labels: np.ndarray, params: Params, seed: int) -> Logistic:
    """Train one model."""
    return Logistic(fold_logistic_path(features, labels, np.array([1 / params["C"]]), classes=int(labels.max()) + 1))
