"""Gradient-boosted trees. A model contains those with fewer trees, so one training per depth serves every number of trees."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from cardiobench.core.errors import MissingExtra
from cardiobench.protocols.grid_search.classifiers.feature_selection import select_features
from cardiobench.protocols.grid_search.folds import Split
from cardiobench.protocols.grid_search.grids import FIXED, Params

if TYPE_CHECKING:
    import xgboost

SETTINGS = FIXED["xgboost"]


@dataclass(frozen=True)
class Boosted:
    """A trained booster.

    Attributes:
        booster: Booster fitted to the selected features.
        selected: Indices of the selected features (`selection`).
        n_features: Number of features before the selection.
        n_classes: Number of classes.
    """

    booster: "xgboost.Booster"
    selected: np.ndarray
    n_features: int
    n_classes: int

    def predict_proba(self, features: np.ndarray, n_trees: int = 0) -> np.ndarray:
        """Return class probabilities, (n, classes), of the first `n_trees` rounds; 0 = all."""
        data = _library().DMatrix(features[:, self.selected].astype(np.float32), nthread=1)
        positive = self.booster.predict(data, iteration_range=(0, n_trees)).astype(np.float64)
        return np.stack([1 - positive, positive], axis=1) if self.n_classes == 2 else positive


def predict_proba_grid(
    features: np.ndarray, labels: np.ndarray, splits: Sequence[Split], params: Sequence[Params], seed: int
) -> list[np.ndarray]:
    """Return the probabilities of each split's held-out rows. The shape is (params, valid, classes)."""
    rounds = {
        depth: max(point["n_estimators"] for point in params if point["max_depth"] == depth)
        for depth in dict.fromkeys(point["max_depth"] for point in params)
    }
    tables = []
    for train, valid in splits:
        models = _fit(features[train], labels[train], rounds, int(labels.max()) + 1, seed)
        tables.append(
            np.stack([models[p["max_depth"]].predict_proba(features[valid], p["n_estimators"]) for p in params])
        )
    return tables


def fit(features: np.ndarray, labels: np.ndarray, params: Params, seed: int) -> Boosted:
    """Train one booster."""
    depth = params["max_depth"]
    return _fit(features, labels, {depth: params["n_estimators"]}, int(labels.max()) + 1, seed)[depth]


def _fit(
    features: np.ndarray, labels: np.ndarray, rounds: dict[int, int], n_classes: int, seed: int
) -> dict[int, Boosted]:
    """Train a booster for each depth, given the number of rounds by depth; the histogram bins are computed once.

    Takes features (n, d) and class codes (n,).
    """
    library = _library()
    selected = select_features(features, labels)
    values = features[:, selected].astype(np.float32)
    data = library.QuantileDMatrix(values, labels, max_bin=SETTINGS["max_bin"], nthread=1)
    objective = (
        {"objective": "binary:logistic"} if n_classes == 2 else {"objective": "multi:softprob", "num_class": n_classes}
    )
    common = {
        **objective,
        "tree_method": "hist",
        "max_bin": SETTINGS["max_bin"],
        "learning_rate": SETTINGS["learning_rate"],
        "nthread": 1,
        "seed": seed,
    }
    return {
        depth: Boosted(
            library.train({**common, "max_depth": depth}, data, n_rounds), selected, features.shape[1], n_classes
        )
        for depth, n_rounds in rounds.items()
    }


def _library() -> ModuleType:
    try:
        import xgboost
    except ImportError:
        raise MissingExtra("the classifier 'xgboost'", "analysis", "xgboost") from None
    return xgboost
