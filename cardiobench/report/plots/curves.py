"""Curves of a classifier's probabilities, equal to scikit-learn's to the last bit.

They are a few lines of numpy each, and scikit-learn takes longer to import, in each of the processes that draw, than a
hundred of them to compute.
"""

import numpy as np

BINS = 10  # of the calibration curve, of equal count


def roc(truth: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False and true positive rate at each corner of the curve, (points,) each; empty where a class is missing.

    Args:
        truth: bool (n,).
        share: probability of true, (n,).
    """
    if truth.all() or not truth.any():
        return np.empty(0), np.empty(0)
    false, true = _counts(truth, share)
    if len(true) > 2:
        corner = np.r_[True, (np.diff(false, 2) != 0) | (np.diff(true, 2) != 0), True]
        false, true = false[corner], true[corner]
    return np.r_[0.0, false] / false[-1], np.r_[0.0, true] / true[-1]


def precision_recall(truth: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Recall and precision from everything called true to nothing, (points,) each; empty where nothing is true."""
    if not truth.any():
        return np.empty(0), np.empty(0)
    false, true = _counts(truth, share)
    return np.r_[(true / true[-1])[::-1], 0.0], np.r_[(true / (true + false))[::-1], 1.0]


def calibration(truth: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean probability and observed share in bins of equal count, (bins,) each; empty bins are left out."""
    share = np.clip(share, 0, 1)
    inner = np.percentile(share, np.linspace(0, 1, BINS + 1) * 100)[1:-1]
    place = np.searchsorted(inner, share)
    count = np.bincount(place, minlength=BINS)
    there = count > 0
    return tuple(np.bincount(place, weights=each, minlength=BINS)[there] / count[there] for each in (share, truth))


def _counts(truth: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False and true positives when everything from each probability upwards is called true, the highest first."""
    order = np.argsort(-share, kind="stable")
    ends = np.r_[np.flatnonzero(np.diff(share[order])), len(share) - 1]
    true = np.cumsum(truth[order])[ends]
    return 1 + ends - true, true
