"""A random forest. One forest of the most trees, grown to the end, is read at every depth and for fewer trees."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from cardiobench.protocols.cross_validation.classifiers.nodes import predict_at_depths
from cardiobench.protocols.cross_validation.folds import Split
from cardiobench.protocols.cross_validation.grids import Point


@dataclass(frozen=True)
class Forest:
    """A trained forest."""

    model: RandomForestClassifier

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """Class probabilities, (n, classes): mean over the trees."""
        return self.model.predict_proba(features.astype(np.float32))


def answers(
    features: np.ndarray, labels: np.ndarray, splits: Sequence[Split], points: Sequence[Point], seed: int
) -> list[np.ndarray]:
    """Probabilities of the held-out lines of each split, (points, held, classes)."""
    features = features.astype(np.float32)
    depths = list(dict.fromkeys(point["max_depth"] for point in points))
    found = []
    for known, held in splits:
        model = _grow(features[known], labels[known], depths, max(point["n_estimators"] for point in points), seed)
        trees = [tree.tree_ for tree in model.estimators_]
        read = dict(zip(depths, predict_at_depths(trees, features[held], depths), strict=True))
        found.append(np.stack([read[p["max_depth"]][:, : p["n_estimators"]].mean(axis=1) for p in points]))
    return found


def _grow(features, labels, depths, trees: int, seed: int) -> RandomForestClassifier:
    deepest = None if None in depths else max(depths)
    model = RandomForestClassifier(n_estimators=trees, max_depth=deepest, random_state=seed, n_jobs=1)
    return model.fit(features, labels)


def fit(features: np.ndarray, labels: np.ndarray, point: Point, seed: int) -> Forest:
    """One trained forest."""
    return Forest(_grow(features.astype(np.float32), labels, [point["max_depth"]], point["n_estimators"], seed))
