"""Random forest. The largest forest, fully grown, gives the predictions of every depth and of fewer trees."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from cardiobench.protocols.grid_search.classifiers.nodes import largest_depth, predict_at_depths
from cardiobench.protocols.grid_search.folds import Split
from cardiobench.protocols.grid_search.grids import Params


@dataclass(frozen=True)
class Forest:
    """A trained forest."""

    model: RandomForestClassifier

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        """Return class probabilities, (n, classes), averaged over the trees."""
        return self.model.predict_proba(features.astype(np.float32))


def predict_proba_grid(
    features: np.ndarray, labels: np.ndarray, splits: Sequence[Split], params: Sequence[Params], seed: int
) -> list[np.ndarray]:
    """Return the probabilities of each split's held-out rows. The shape is (params, valid, classes)."""
    features = features.astype(np.float32)
    depths = list(dict.fromkeys(point["max_depth"] for point in params))
    n_trees = max(point["n_estimators"] for point in params)
    tables = []
    for train, valid in splits:
        model = _grow(features[train], labels[train], depths, n_trees, seed)
        trees = [tree.tree_ for tree in model.estimators_]
        by_depth = dict(zip(depths, predict_at_depths(trees, features[valid], depths), strict=True))
        tables.append(np.stack([by_depth[p["max_depth"]][:, : p["n_estimators"]].mean(axis=1) for p in params]))
    return tables


def _grow(
    features: np.ndarray, labels: np.ndarray, depths: Sequence[int | None], n_trees: int, seed: int
) -> RandomForestClassifier:
    """Train trees of the largest depth, whose upper levels are the trees of smaller ones.

    Takes features, float32 (n, d), and class codes (n,).
    """
    model = RandomForestClassifier(n_estimators=n_trees, max_depth=largest_depth(depths), random_state=seed, n_jobs=1)
    return model.fit(features, labels)


def fit(features: np.ndarray, labels: np.ndarray, params: Params, seed: int) -> Forest:
    """Train one forest."""
    return Forest(_grow(features.astype(np.float32), labels, [params["max_depth"]], params["n_estimators"], seed))
