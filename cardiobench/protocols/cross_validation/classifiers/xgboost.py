"""Gradient-boosted trees. A model of many trees holds those of fewer: one training a depth answers for every count."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cardiobench.core.errors import MissingExtra
from cardiobench.protocols.cross_validation.classifiers.screening import select_features
from cardiobench.protocols.cross_validation.folds import Split
from cardiobench.protocols.cross_validation.grids import FIXED, Point

if TYPE_CHECKING:
    import xgboost

SETTINGS = FIXED["xgboost"]


@dataclass(frozen=True)
class Boosted:
    """A trained booster.

    Attributes:
        booster: of the kept features.
        kept: positions of the features that it was given (`screening`).
        count: features there were.
        classes: how many.
    """

    booster: "xgboost.Booster"
    kept: np.ndarray
    count: int
    classes: int

    def probabilities(self, features: np.ndarray, trees: int = 0) -> np.ndarray:
        """Class probabilities, (n, classes), by the first so many rounds; 0 = all."""
        data = _library().DMatrix(features[:, self.kept].astype(np.float32), nthread=1)
        positive = self.booster.predict(data, iteration_range=(0, trees)).astype(np.float64)
        return np.stack([1 - positive, positive], axis=1) if self.classes == 2 else positive


def answers(
    features: np.ndarray, labels: np.ndarray, splits: Sequence[Split], points: Sequence[Point], seed: int
) -> list[np.ndarray]:
    """Probabilities of the held-out lines of each split, (points, held, classes)."""
    most = {
        depth: max(point["n_estimators"] for point in points if point["max_depth"] == depth)
        for depth in dict.fromkeys(point["max_depth"] for point in points)
    }
    found = []
    for known, held in splits:
        models = _fit(features[known], labels[known], most, int(labels.max()) + 1, seed)
        found.append(
            np.stack([models[p["max_depth"]].probabilities(features[held], p["n_estimators"]) for p in points])
        )
    return found


def fit(features: np.ndarray, labels: np.ndarray, point: Point, seed: int) -> Boosted:
    """One trained booster."""
    depth = point["max_depth"]
    return _fit(features, labels, {depth: point["n_estimators"]}, int(labels.max()) + 1, seed)[depth]


def _fit(features, labels, most: dict[int, int], classes: int, seed: int) -> dict[int, Boosted]:
    """A booster for each depth with the most trees asked of it; the histogram bins are made once for all."""
    library = _library()
    kept = select_features(features, labels)
    data = library.QuantileDMatrix(features[:, kept].astype(np.float32), labels, max_bin=SETTINGS["max_bin"], nthread=1)
    objective = (
        {"objective": "binary:logistic"} if classes == 2 else {"objective": "multi:softprob", "num_class": classes}
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
        depth: Boosted(library.train({**common, "max_depth": depth}, data, trees), kept, features.shape[1], classes)
        for depth, trees in most.items()
    }


def _library():
    try:
        import xgboost
    except ImportError:
        raise MissingExtra("the classifier 'xgboost'", "analysis", "xgboost") from None
    return xgboost
