"""Ridge regression for many penalties at once, and the features in no more dimensions than there are lines."""

import numpy as np

RANK_TOLERANCE = 1e-12  # of the largest squared singular value: what is below is rounding error


def ridge_path(features: np.ndarray, values: np.ndarray, penalties: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ridge regression for many penalties from one singular value decomposition.

    Args:
        features: (n, d).
        values: (n,).
        penalties: (k,), added to the squared singular values of the centred features.

    Returns:
        Coefficients (d, k) and intercepts (k,).
    """
    centre, mean = features.mean(axis=0), values.mean()
    left, singular, right = np.linalg.svd(features - centre, full_matrices=False)
    shrunk = singular[:, None] / (singular[:, None] ** 2 + penalties[None, :])
    coefficients = right.T @ (shrunk * (left.T @ (values - mean))[:, None])
    return coefficients, mean - centre @ coefficients


def row_axes(known: np.ndarray) -> np.ndarray | None:
    """Orthonormal axes (d, r) of the space that lines (n, d) span; None where they are no fewer than the features.

    A penalty on the squared coefficients leaves nothing outside that space, so a linear model answers the same in these
    coordinates, and is fitted in a fraction of the time.
    """
    if known.shape[1] <= known.shape[0]:
        return None
    # The n x n products are all that is needed; a decomposition of the n x d features takes ten times as long.
    squares, vectors = np.linalg.eigh(known @ known.T)
    kept = squares > RANK_TOLERANCE * squares[-1]
    return known.T @ (vectors[:, kept] / np.sqrt(squares[kept]))
