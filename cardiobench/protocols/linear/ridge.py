"""Ridge regression for many penalties from one eigendecomposition."""

from collections.abc import Sequence

import numpy as np

from cardiobench.protocols.linear.path import Path
from cardiobench.protocols.linear.rows import PrincipalRows


def ridge_path(
    features: np.ndarray,
    indices: np.ndarray,
    targets: np.ndarray,
    penalties: Sequence[float] | np.ndarray,
    *,
    scale: tuple[np.ndarray, np.ndarray] | None = None,
) -> Path:
    """Fit ridge regression on standardised features for many penalties from one eigendecomposition.

    Args:
        features: Feature matrix, shape (N, d).
        indices: Indices of the training rows, shape (n,).
        targets: Numbers of these rows, (n,).
        penalties: Positive penalties on the squared coefficients.
        scale: Mean and deviation (d,) of each feature; by default those of these rows.

    Yields:
        Each penalty, strongest first, with coefficients (d, 1) and intercepts (1,) in the units of the features.
    """
    rows = PrincipalRows(features, indices, np.ones(len(indices)), scale)
    mean = targets.mean()
    products = rows.gradient((targets - mean)[:, None])[:-1]
    for penalty in sorted(penalties, reverse=True):
        yield penalty, rows.in_feature_units(np.concatenate([products / (rows.values[:, None] + penalty), [[mean]]]))
