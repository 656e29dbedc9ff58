"""Decision tree. A fully grown tree for each leaf size gives the predictions of every depth."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from cardiobench.protocols.grid_search.classifiers.feature_selection import select_features
from cardiobench.protocols.grid_search.classifiers.nodes import largest_depth, predict_at_depths
from cardiobench.protocols.grid_search.folds import Split
from cardiobench.protocols.grid_search.grids import Params


@dataclass(frozen=True)
class Tree:
    """A trained tree.

    Attributes:
        model: Model fitted to the selected features.
        selected: Indices of the selected features (`selection`).
        n_features: Number of features before the selection.
    """

    model: DecisionTreeClassifier
    selected: np.ndarray
    n_features: int

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        """Return class probabilities, (n, classes): shares of the classes in the leaf."""
        return self.model.predict_proba(features[:, self.selected].astype(np.float32))


def predict_proba_grid(
    features: np.ndarray, labels: np.ndarray, splits: Sequence[Split], params: Sequence[Params], seed: int
) -> list[np.ndarray]:
    """Return the probabilities of each split's held-out rows. The shape is (params, valid, classes)."""
    features = features.astype(np.float32)
    return [_of_split(features, labels, split, params, seed) for split in splits]


def _of_split(
    features: np.ndarray, labels: np.ndarray, split: Split, params: Sequence[Params], seed: int
) -> np.ndarray:
    """Return the probabilities of the held-out rows. The shape is (params, valid, classes).

    Takes features, float32 (n, d), and class codes (n,). The features are selected on the training rows.
    """
    train, valid = split
    selected = select_features(features[train], labels[train])
    tables: dict[int, np.ndarray] = {}
    for leaf in dict.fromkeys(point["min_samples_leaf"] for point in params):
        members = [index for index, point in enumerate(params) if point["min_samples_leaf"] == leaf]
        depths = [params[index]["max_depth"] for index in members]
        model = DecisionTreeClassifier(max_depth=largest_depth(depths), min_samples_leaf=leaf, random_state=seed)
        model.fit(features[np.ix_(train, selected)], labels[train])
        shares = predict_at_depths([model.tree_], features[np.ix_(valid, selected)], depths)
        tables |= {index: share[:, 0] for index, share in zip(members, shares, strict=True)}
    return np.stack([tables[index] for index in range(len(params))])


def fit(features: np.ndarray, labels: np.ndarray, params: Params, seed: int) -> Tree:
    """Train one tree."""
    selected = select_features(features, labels)
    model = DecisionTreeClassifier(**params, random_state=seed)
    return Tree(model.fit(features[:, selected].astype(np.float32), labels), selected, features.shape[1])
