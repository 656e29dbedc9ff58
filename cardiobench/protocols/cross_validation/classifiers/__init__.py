"""The classifiers, a file each. Every one has the same two functions.

* `answers(features, labels, splits, points, seed)`: for each split the class probabilities of its held-out lines under
  every point of the grid, (points, held, classes). All at once, so that work can be shared between points.
* `fit(features, labels, point, seed)`: one trained model, with `probabilities(features)`, for SHAP.

Features are float64 (n, d), labels are codes 0 to K-1. Nothing of a held-out line is looked at before it is answered.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Literal, Protocol, get_args

import numpy as np

from cardiobench.core.registry import unknown_name
from cardiobench.protocols.cross_validation.folds import Split
from cardiobench.protocols.cross_validation.grids import Point

ClassifierName = Literal["xgboost", "tree", "forest", "logistic", "mlp"]
CLASSIFIERS: tuple[ClassifierName, ...] = get_args(ClassifierName)


class Fitted(Protocol):
    """A trained classifier."""

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """Class probabilities, (n, classes)."""
        ...


class Classifier(Protocol):
    """A module of this package."""

    def answers(
        self, features: np.ndarray, labels: np.ndarray, splits: Sequence[Split], points: Sequence[Point], seed: int
    ) -> list[np.ndarray]:
        """Probabilities of the held-out lines of each split, (points, held, classes)."""
        ...

    def fit(self, features: np.ndarray, labels: np.ndarray, point: Point, seed: int) -> Fitted:
        """One trained model."""
        ...


def classifier(name: str) -> Classifier:
    """The classifier of that name; `UnknownName` otherwise, `MissingExtra` where its library is not installed."""
    if name not in CLASSIFIERS:
        raise unknown_name("classifier", name, CLASSIFIERS)
    return import_module(f"{__name__}.{name}")
