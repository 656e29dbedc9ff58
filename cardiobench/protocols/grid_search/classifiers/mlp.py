"""A network with one hidden layer: scikit-learn's MLPClassifier on standardised features, in float32."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from cardiobench.protocols.features import mean_and_std
from cardiobench.protocols.grid_search.folds import Split
from cardiobench.protocols.grid_search.grids import FIXED, Params

SETTINGS = FIXED["mlp"]


@dataclass(frozen=True)
class Network:
    """A trained network.

    Attributes:
        model: Model fitted to the standardised features.
        mean: Mean of each feature, shape (d,).
        std: Standard deviation of each feature, shape (d,).
    """

    model: MLPClassifier
    mean: np.ndarray
    std: np.ndarray

    def standardise(self, features: np.ndarray) -> np.ndarray:
        """Return standardised features. The array is float32 (n, d)."""
        return ((features - self.mean) / self.std).astype(np.float32)

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        """Return class probabilities. The shape is (n, classes)."""
        return self.model.predict_proba(self.standardise(features)).astype(np.float64)


def predict_proba_grid(
    features: np.ndarray, labels: np.ndarray, splits: Sequence[Split], params: Sequence[Params], seed: int
) -> list[np.ndarray]:
    """Return the probabilities of each split's held-out rows. The shape is (params, valid, classes)."""
    return [
        np.stack([fit(features[train], labels[train], point, seed).predict_proba(features[valid]) for point in params])
        for train, valid in splits
    ]


def fit(features: np.ndarray, labels: np.ndarray, params: Params, seed: int) -> Network:
    """Train one network."""
    mean, std = mean_and_std(features)
    model = MLPClassifier(
        SETTINGS["hidden"],
        alpha=params["alpha"],
        learning_rate_init=params["learning_rate"],
        batch_size=min(SETTINGS["batch"], len(labels)),
        max_iter=SETTINGS["epochs"],
        n_iter_no_change=SETTINGS["patience"],
        tol=SETTINGS["tolerance"],
        random_state=seed,
    )
    network = Network(model, mean, std)
    with warnings.catch_warnings():
        # The number of epochs is fixed by the protocol, so the warning is expected.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(network.standardise(features), labels)
    return network
