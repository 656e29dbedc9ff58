"""F1, precision, recall and specificity of each class of a multilabel task, and their means."""

import numpy as np

NUMBERS = {
    "multilabel_f1": {"better": "higher", "range": (0, 1), "unit": "fraction", "interval": "class_mean: jaccard"},
    "multilabel_precision": {"better": "higher", "range": (0, 1), "unit": "fraction", "interval": "class_mean: wilson"},
    "multilabel_recall": {"better": "higher", "range": (0, 1), "unit": "fraction", "interval": "class_mean: wilson"},
    "multilabel_specificity": {
        "better": "higher",
        "range": (0, 1),
        "unit": "fraction",
        "interval": "class_mean: wilson",
    },
}


def _tables(references, predictions):
    """Check references (n, K), 0, 1 or NaN, and predictions (n, K), 0 or 1; raise a ValueError with counts."""
    truth, answer = (
        _matrix(values, name) for values, name in ((references, "references"), (predictions, "predictions"))
    )
    if truth.shape != answer.shape:
        raise ValueError(
            f"references have shape {truth.shape} and predictions {answer.shape}; the shapes must be equal."
        )
    odd = int((~((truth == 0) | (truth == 1) | np.isnan(truth))).sum())
    if odd:
        raise ValueError(f"{odd} of {truth.size} references are not 0, 1 or empty (for an unmeasured class).")
    bad = int((~((answer == 0) | (answer == 1))).sum())
    if bad:
        raise ValueError(
            f"{bad} of {answer.size} predictions are neither 0 nor 1; apply a threshold to probabilities first."
        )
    return truth, answer


# Copied: formulas are self-contained, and all copies are identical.
def _matrix(values, name):
    try:
        table = np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} are not a table of numbers of shape (n, K): {error}") from None
    if table.ndim != 2 or not table.size:
        raise ValueError(f"{name} have shape {table.shape}; give one row of K numbers per recording, shape (n, K).")
    return table


def shares(references, predictions):
    """Return the numerator and denominator of the share behind each number, for each class.

    Returns:
        {key: (hits, rows)}, bool (n, K) each: the rows in the numerator and in the denominator. F1 is 2 s / (1 + s),
        where s is Jaccard's index: true positives among the rows that have or are given the class.
    """
    truth, answer = _tables(references, predictions)
    present, absent, said = truth == 1, truth == 0, answer == 1
    hits = present & said
    return {
        "multilabel_f1": (hits, present | (absent & said)),
        "multilabel_precision": (hits, ~np.isnan(truth) & said),
        "multilabel_recall": (hits, present),
        "multilabel_specificity": (absent & ~said, absent),
    }


def floor(references, classes):
    """Return the best expected scores without looking at the recording, and the strategy for each.

    Giving a class of share p to m of n recordings at random has the expected F1 2 m p / (m + n p), which grows with m.
    The maximum, 2 p / (1 + p), is reached if every recording gets the class; random answers at the class rate reach p.
    """
    share = np.nansum(references, axis=0) / np.maximum((~np.isnan(references)).sum(axis=0), 1)
    share = share[(share > 0) & (share < 1)]
    every = "every class in every recording"
    return {
        "multilabel_f1": (float((2 * share / (1 + share)).mean()), every),
        "multilabel_precision": (float(share.mean()), "any answer"),
        "multilabel_recall": (1.0, every),
        "multilabel_specificity": (1.0, "no class in any recording"),
    }


def _per_class(truth, answer, weights):
    """Compute the four numbers of every class in each resample. Returns an array (4, B, K).

    NaN if no row has, or none lacks, the class.
    """
    weights = np.asarray(weights, dtype=np.float64)
    present, absent, said = truth == 1, truth == 0, answer == 1
    tables = (present & said, absent & said, present & ~said, absent & ~said)
    hits, false, missed, right = (weights @ table.astype(np.float64) for table in tables)
    parts = np.stack([2 * hits, hits, hits, right])
    wholes = np.stack([2 * hits + false + missed, hits + false, hits + missed, false + right])
    values = np.divide(parts, wholes, out=np.zeros_like(parts), where=wholes > 0)
    both = (hits + missed > 0) & (false + right > 0)
    return np.where(both, values, np.nan)


def _means(values):
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        means = np.where(known, values, 0).sum(axis=2) / known.sum(axis=2)
    return dict(zip(NUMBERS, means, strict=True))


def compute_resamples(references, predictions, weights):
    """Compute the means for many weightings of the same rows at once.

    Args:
        references: Labels (n, K): 1 if the recording has the class, 0 if not, NaN if unmeasured.
        predictions: Predictions (n, K): 1 if the class is predicted, 0 if not.
        weights: Multiplicity of each row in each of B resamples, (B, n), not negative.

    Returns:
        The four means, (B,) float64, over the classes that are present and absent in the resample; NaN if there is no
        such class.
    """
    return _means(_per_class(*_tables(references, predictions), weights))


def compute(references, predictions, average="macro"):
    """Compute F1, precision, recall and specificity of each class against its absence, averaged over the classes.

    Args:
        references: Labels (n, K): 1 if the recording has the class, 0 if not, NaN or None if unmeasured; the recording
            is left out only for that class.
        predictions: Predictions (n, K): 1 if the class is predicted, 0 if not.
        average: "macro", or None for the numbers of each class.

    Returns:
        `multilabel_f1`, `multilabel_precision`, `multilabel_recall` and `multilabel_specificity`, over the classes that
        some recordings have and others lack; if `average` is None, `f1`, `precision`, `recall` and `specificity`, lists
        of K numbers, NaN for other classes. The precision of a class that is never predicted is 0.

    Raises:
        ValueError: Shapes differ, references are not 0, 1 or unmeasured, or predictions are not 0 or 1.

    Example:
        >>> compute([[1, 0], [0, 0], [1, 1]], [[1, 0], [1, 0], [1, 1]])["multilabel_f1"]
        0.9
    """
    if average not in ("macro", None):
        raise ValueError(f"average is {average!r}, but must be 1 of 2 values: 'macro' or None.")
    truth, answer = _tables(references, predictions)
    values = _per_class(truth, answer, np.ones((1, len(truth))))
    if average is None:
        names = ("f1", "precision", "recall", "specificity")
        return {name: row.tolist() for name, row in zip(names, values[:, 0], strict=True)}
    return {key: float(means[0]) for key, means in _means(values).items()}
