"""Feature selection for trees with very many features, tens of times as many as foundation models have."""

import warnings

import numpy as np
from sklearn.feature_selection import f_classif

from cardiobench.protocols.grid_search.grids import MAX_FEATURES


def select_features(features: np.ndarray, labels: np.ndarray, max_features: int = MAX_FEATURES) -> np.ndarray:
    """Return the indices of the features with the largest F statistic; all of them if there are few.

    A tree evaluates every feature in every node. No foundation model here has more than 1,024 dimensions, so this only
    affects training-free features with ten thousand dimensions.

    Args:
        features: Training rows, (n, d).
        labels: Class codes, (n,).
        max_features: Number of features to keep.
    """
    if features.shape[1] <= max_features:
        return np.arange(features.shape[1])
    vary = np.flatnonzero(np.ptp(features, axis=0) > 0)
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        # The F statistic is infinite for features without variance within the classes, and NaN for constant features.
        warnings.filterwarnings("ignore", message="Features .* are constant")
        ratio = np.nan_to_num(f_classif(features[:, vary].astype(np.float64), labels)[0], nan=0.0, posinf=np.inf)
    return np.sort(vary[np.argsort(-ratio, kind="stable")[:max_features]])
