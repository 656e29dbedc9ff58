"""AUROC and average precision of each class of a multilabel task against its absence, and their means."""

import numpy as np
from scipy import sparse

NUMBERS = {
    "auroc_macro": {"better": "higher", "range": (0, 1), "unit": "fraction", "interval": "class_mean"},
    "auprc_macro": {
        "better": "higher",
        "range": (0, 1),
        "unit": "fraction",
        "interval": "none: biased upwards if few patients have a label",
    },
}
NO_FLOOR = "biased upwards if few patients have a label: read the mean AUROC"
NEEDS_PROBABILITIES = True
_COLUMNS = 128  # Resamples per block; the sums of a class then fit in the processor's cache.


def _tables(references, predictions):
    """Check references (n, K), 0, 1 or NaN, and finite predictions (n, K); raise a ValueError with counts."""
    truth, scores = (
        _matrix(values, name) for values, name in ((references, "references"), (predictions, "predictions"))
    )
    if truth.shape != scores.shape:
        raise ValueError(
            f"references have shape {truth.shape} and predictions {scores.shape}; the shapes must be equal."
        )
    odd = int((~((truth == 0) | (truth == 1) | np.isnan(truth))).sum())
    if odd:
        raise ValueError(f"{odd} of {truth.size} references are not 0, 1 or empty (for an unmeasured class).")
    bad = int((~np.isfinite(scores)).sum())
    if bad:
        raise ValueError(f"{bad} of {scores.size} predictions are not finite numbers.")
    return truth, scores


# Copied: formulas are self-contained, and all copies are identical.
def _matrix(values, name):
    try:
        table = np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} are not a table of numbers of shape (n, K): {error}") from None
    if table.ndim != 2 or not table.size:
        raise ValueError(f"{name} have shape {table.shape}; give one row of K numbers per recording, shape (n, K).")
    return table


def _sums(groups, rows, count, weights):
    """Sum the weights (n, b) of rows by group 0 to count - 1. Returns an array (count, b)."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(count + 1))
    return sparse.csr_array((np.ones(len(rows)), rows[order], starts), shape=(count, len(weights))) @ weights


def _areas(truth, scores, weights):
    """Compute AUROC and average precision of one class in each resample, (b,) each; ties count half.

    Only the scores of positive rows divide the ranking; negative rows are summed between and at these scores.
    """
    positive, negative = np.flatnonzero(truth == 1), np.flatnonzero(truth == 0)
    cuts, place = np.unique(scores[positive], return_inverse=True)
    count = len(cuts)
    if not count or not len(negative):
        return np.full((2, weights.shape[1]), np.nan)
    hits = _sums(place, positive, count, weights)
    # 2 j between the cuts j - 1 and j, 2 j + 1 at cut j
    bins = np.searchsorted(cuts, scores[negative], "left") + np.searchsorted(cuts, scores[negative], "right")
    below = np.cumsum(_sums(bins, negative, 2 * count + 1, weights), axis=0)
    lower, rest = below[:-1:2], below[-1]
    found = np.cumsum(hits[::-1], axis=0)[::-1]
    total = found[0]
    taken = found + rest - lower
    precision = np.divide(found, taken, out=np.zeros_like(found), where=taken > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        auroc = np.einsum("ub,ub->b", hits, lower + below[1::2]) / (2 * total * rest)
        auprc = np.where(rest > 0, np.einsum("ub,ub->b", hits, precision) / total, np.nan)
    return np.stack([auroc, auprc])


def _per_class(truth, scores, weights):
    """Compute both areas of every class in each resample. Returns an array (2, K, B)."""
    weights = np.asarray(weights, dtype=np.float64)
    blocks = []
    for start in range(0, len(weights), _COLUMNS):
        columns = np.ascontiguousarray(weights[start : start + _COLUMNS].T)
        blocks.append(np.stack([_areas(*pair, columns) for pair in zip(truth.T, scores.T, strict=True)], axis=1))
    return np.concatenate(blocks, axis=2)


def floor(references, classes):
    """Return the best expected scores without looking at the recording, and the strategy for each."""
    return {"auroc_macro": (0.5, "any order"), "auprc_macro": (np.nan, NO_FLOOR)}


def per_class(references, predictions, probabilities=None):
    """Return whether each row has each class, and its scores for the classes. Each has the shape (n, K)."""
    return _tables(references, predictions if probabilities is None else probabilities)


def _means(areas):
    known = ~np.isnan(areas)
    with np.errstate(invalid="ignore"):
        auroc, auprc = np.where(known, areas, 0).sum(axis=1) / known.sum(axis=1)
    return {"auroc_macro": auroc, "auprc_macro": auprc}


def compute_resamples(references, predictions, weights, probabilities=None):
    """Compute both means for many weightings of the same rows at once.

    Args:
        references: Labels (n, K): 1 if the recording has the class, 0 if not, NaN if unmeasured.
        predictions: Scores (n, K), higher for the class.
        weights: Multiplicity of each row in each of B resamples, (B, n), not negative.
        probabilities: Scores (n, K) that replace `predictions`.

    Returns:
        `auroc_macro` and `auprc_macro`, (B,) float64: means over the classes that are present and absent in the
        resample; NaN if there is no such class.
    """
    return _means(_per_class(*per_class(references, predictions, probabilities), weights))


def compute(references, predictions, average="macro", probabilities=None):
    """Compute AUROC and average precision of each class against its absence, averaged over the classes.

    Args:
        references: Labels (n, K): 1 if the recording has the class, 0 if not, NaN or None if unmeasured; the recording
            is left out only for that class.
        predictions: Scores (n, K), larger if the class is more likely; finite, not necessarily probabilities.
        average: "macro", or None for the numbers of each class.
        probabilities: Scores (n, K) that replace the answers in `predictions`.

    Returns:
        `auroc_macro` and `auprc_macro`, over the classes that some recordings have and others lack; if `average` is
        None, `auroc` and `auprc`, lists of K numbers, NaN for other classes.

    Raises:
        ValueError: Shapes differ, references are not 0 or 1, or predictions are not finite.

    Example:
        >>> compute([[1, 0], [0, 0], [1, 1]], [[0.9, 0.1], [0.4, 0.6], [0.3, 0.8]])
        {'auroc_macro': 0.75, 'auprc_macro': 0.9166666666666666}
    """
    if average not in ("macro", None):
        raise ValueError(f"average is {average!r}, but must be 1 of 2 values: 'macro' or None.")
    truth, scores = per_class(references, predictions, probabilities)
    areas = _per_class(truth, scores, np.ones((1, len(truth))))
    if average is None:
        return {"auroc": areas[0, :, 0].tolist(), "auprc": areas[1, :, 0].tolist()}
    return {key: float(values[0]) for key, values in _means(areas).items()}
