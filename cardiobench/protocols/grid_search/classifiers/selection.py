"""Choice of features for a tree where there are very many: tens of times as many as a foundation model has."""

import warnings

import numpy as np
from sklearn.feature_selection import f_classif

from cardiobench.protocols.grid_search.grids import MAX_FEATURES


def select_features(features: np.ndarray, labels: np.ndarray, max_features: int = MAX_FEATURES) -> np.ndarray:
    """Return the indices of the features with the largest F statistic; all of them where they are few.

    A tree looks at every feature in every node, whatever the number of rows. No foundation model here has more than
    1,024 dimensions, so this only concerns training-free features of ten thousand.

    Args:
        features: Training rows, (n, d).
        labels: Class codes, (n,).
        max_features: Number of features to keep.
    """
    if features.shape[1] <= max_features:
        return np.arange(features.shape[1])
    vary = np.flatnonzero(np.ptp(features, axis=0) > 0)
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        # A feature that separates the classes has no spread inside them (infinite); one that hardly varies is not a number.
        warnings.filterwarnings("ignore", message="Features .* are constant")
        ratio = np.nan_to_num(f_classif(features[:, vary].astype(np.float64), labels)[0], nan=0.0, posinf=np.inf)
    return np.sort(vary[np.argsort(-ratio, kind="stable")[:max_features]])
