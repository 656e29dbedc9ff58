"""The classifiers, a module each, all with the two functions of `Classifier`.

Features are float64 (n, d), labels are class codes 0 to K-1. No held-out label is used to predict its row.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Literal, Protocol, cast, get_args

import numpy as np

from cardiobench.core.registry import unknown_name
from cardiobench.protocols.grid_search.folds import Split
from cardiobench.protocols.grid_search.grids import Params

ClassifierName = Literal["xgboost", "tree", "forest", "logistic", "mlp"]
CLASSIFIERS: tuple[ClassifierName, ...] = get_args(ClassifierName)


class Fitted(Protocol):
    """A trained classifier."""

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        """Return class probabilities. The shape is (n, classes)."""
        ...


class Classifier(Protocol):
    """Interface of the modules of this package."""

    def predict_proba_grid(
        self, features: np.ndarray, labels: np.ndarray, splits: Sequence[Split], params: Sequence[Params], seed: int
    ) -> list[np.ndarray]:
        """Return the probabilities of each split's held-out rows for all parameters.

        The shape is (params, valid, classes).

        A single call for all splits, so that a classifier can share work between parameters and splits.
        """
        ...

    def fit(self, features: np.ndarray, labels: np.ndarray, params: Params, seed: int) -> Fitted:
        """Train one model."""
        ...


def classifier(name: str) -> Classifier:
    """Return the classifier of that name; raises `UnknownName` if there is none, `MissingExtra` if its library is missing."""
    if name not in CLASSIFIERS:
        raise unknown_name("classifier", name, CLASSIFIERS)
    return cast(Classifier, import_module(f"{__name__}.{name}"))
