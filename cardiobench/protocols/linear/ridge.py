"""Ridge regression for many penalties from rows that pass by in blocks."""

from collections.abc import Sequence

import numpy as np

from cardiobench.protocols.linear.rows import PrincipalRows


def ridge_path(
    features: np.ndarray,
    indices: np.ndarray,
    targets: np.ndarray,
    penalties: Sequence[float] | np.ndarray,
    *,
    scale: tuple[np.ndarray, np.ndarray] | None = None,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Fit ridge regression on standardised features for many penalties from one eigendecomposition.

    Args:
        features: (N, d).
        indices: of the rows to learn from, (n,).
        targets: numbers of these rows, (n,).
        penalties: on the squared coefficients, positive.
        scale: mean and deviation (d,) of each feature; by default those of these rows.

    Returns:
        Coefficients (d, 1) and intercepts (1,) in the units of the features, for each penalty.
    """
    rows = PrincipalRows(features, indices, np.ones(len(indices)), scale)
    mean = targets.mean()
    products = rows.gradient((targets - mean)[:, None])[:-1]
    return [
        rows.in_feature_units(np.concatenate([products / (rows.values[:, None] + penalty), [[mean]]]))
        for penalty in penalties
    ]
