"""Which features a tree gets to see where there are very many: tens of times as many as a foundation model has."""

import warnings

import numpy as np
from sklearn.feature_selection import f_classif

from cardiobench.protocols.cross_validation.grids import MOST_FEATURES


def select_features(features: np.ndarray, labels: np.ndarray, most: int = MOST_FEATURES) -> np.ndarray:
    """Positions of the features with the largest ratio of between-class to within-class variance; all if they are few.

    A tree looks at every feature in every node, whatever the number of lines. No foundation model here has more than
    1,024 dimensions, so this only concerns training-free features of ten thousand.

    Args:
        features: of the lines that are learned from, (n, d).
        labels: codes, (n,).
        most: features kept.
    """
    if features.shape[1] <= most:
        return np.arange(features.shape[1])
    vary = np.flatnonzero(np.ptp(features, axis=0) > 0)
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        # A feature that separates the classes has no spread inside them (infinite); one that hardly varies is not a number.
        warnings.filterwarnings("ignore", message="Features .* are constant")
        ratio = np.nan_to_num(f_classif(features[:, vary].astype(np.float64), labels)[0], nan=0.0, posinf=np.inf)
    return np.sort(vary[np.argsort(-ratio, kind="stable")[:most]])
