"""A decision tree. One tree grown to the end for each leaf size is read at every depth."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from cardiobench.protocols.cross_validation.classifiers.nodes import predict_at_depths
from cardiobench.protocols.cross_validation.classifiers.screening import select_features
from cardiobench.protocols.cross_validation.folds import Split
from cardiobench.protocols.cross_validation.grids import Point


@dataclass(frozen=True)
class Tree:
    """A trained tree.

    Attributes:
        model: of the kept features.
        kept: positions of the features that it was given (`screening`).
        count: features there were.
    """

    model: DecisionTreeClassifier
    kept: np.ndarray
    count: int

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """Class probabilities, (n, classes): shares of the classes in the leaf."""
        return self.model.predict_proba(features[:, self.kept].astype(np.float32))


def answers(
    features: np.ndarray, labels: np.ndarray, splits: Sequence[Split], points: Sequence[Point], seed: int
) -> list[np.ndarray]:
    """Probabilities of the held-out lines of each split, (points, held, classes)."""
    features = features.astype(np.float32)
    return [_answers(features, labels, split, points, seed) for split in splits]


def _answers(features, labels, split: Split, points, seed: int) -> np.ndarray:
    known, held = split
    kept = select_features(features[known], labels[known])
    seen, asked = features[np.ix_(known, kept)], features[np.ix_(held, kept)]
    found: list = [None] * len(points)
    for leaf in dict.fromkeys(point["min_samples_leaf"] for point in points):
        own = [number for number, point in enumerate(points) if point["min_samples_leaf"] == leaf]
        depths = [points[number]["max_depth"] for number in own]
        deepest = None if None in depths else max(depths)
        model = DecisionTreeClassifier(max_depth=deepest, min_samples_leaf=leaf, random_state=seed)
        model.fit(seen, labels[known])
        for number, read in zip(own, predict_at_depths([model.tree_], asked, depths), strict=True):
            found[number] = read[:, 0]
    return np.stack(found)


def fit(features: np.ndarray, labels: np.ndarray, point: Point, seed: int) -> Tree:
    """One trained tree."""
    kept = select_features(features, labels)
    model = DecisionTreeClassifier(**point, random_state=seed)
    return Tree(model.fit(features[:, kept].astype(np.float32), labels), kept, features.shape[1])
