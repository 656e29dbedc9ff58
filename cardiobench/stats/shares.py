"""Means over classes of shares of rows: precision, recall and specificity, and F1 as a function of such a share."""

import numpy as np
import numpy.typing as npt

from cardiobench.stats.areas import share_of_rows
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.intervals import Interval, mean_interval, wilson_ends

JACCARD = "jaccard"
"""Scale 2 s / (1 + s), which is F1 if the share s is Jaccard's index: true positives among true or predicted
positives."""


def on_scale(shares: np.ndarray, scale: str) -> npt.NDArray[np.float64]:
    """Return shares on a scale: s itself, or 2 s / (1 + s)."""
    return 2 * shares / (1 + shares) if scale == JACCARD else np.asarray(shares)


def shares_of(hits: np.ndarray, rows: np.ndarray) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Compute shares and the influence of rows on the shares.

    Args:
        hits: Rows in the numerator, bool (n, K).
        rows: Rows in the denominator, bool (n, K).

    Returns:
        Shares, (K,), 0 without rows, and the derivative of each with respect to the weight of each row, (n, K).
    """
    sizes = np.maximum(rows.sum(axis=0), 1)
    shares = hits.sum(axis=0) / sizes
    return shares, np.where(rows, hits - shares, 0.0) / sizes


def slope_of(shares: np.ndarray, scale: str) -> npt.NDArray[np.float64]:
    """Return the derivative of a scaled share with respect to the share. The shape is (K,)."""
    return 2 / (1 + shares) ** 2 if scale == JACCARD else np.ones(len(shares))


def mean_of_shares(hits: np.ndarray, rows: np.ndarray, scale: str, clusters: Clusters) -> Interval:
    """Compute the interval of a mean over classes from Wilson's interval of each class's share.

    Args:
        hits: Rows in the numerator, bool (n, K).
        rows: Rows in the denominator, bool (n, K).
        scale: "wilson" for the shares s themselves, "jaccard" for 2 s / (1 + s).
        clusters: Patients of the rows.
    """
    shares, influence = shares_of(hits, rows)
    each = [
        share_of_rows(share, column, taken, clusters, wilson_ends)
        for share, column, taken in zip(shares, influence.T, rows.T, strict=True)
    ]
    lows, highs = (np.array([getattr(one, end) for one in each]) for end in ("low", "high"))
    values, lows, highs = (on_scale(one, scale) for one in (shares, lows, highs))
    return mean_interval(values, lows, highs, clusters.sum(influence * slope_of(shares, scale)), clusters.count)
