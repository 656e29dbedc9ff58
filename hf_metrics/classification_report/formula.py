"""Everything that is usually told about a classifier beside its macro F1: hits, ranking, calibration."""

import numbers

import numpy as np

HIGHER_IS_BETTER = {
    "accuracy": True,
    "balanced_accuracy": True,
    "auroc": True,
    "auprc": True,
    "brier": False,
    "nll": False,
    "ece": False,
}
BINS = 15


def _codes(values, name):
    """One class a row as a whole number from 0, or a ValueError that counts what is wrong."""
    array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise ValueError(f"{name} have shape {array.shape}; give one class per row, shape (n,).")
    if array.size == 0:
        raise ValueError(f"0 {name}: there is nothing to score.")
    if array.dtype.kind not in "iub":
        odd = [value for value in array.tolist() if not _whole(value)]
        if odd:
            raise ValueError(f"{len(odd)} of {array.size} {name} are not whole numbers (first: {odd[0]!r}).")
    array = array.astype(np.int64)
    if array.min() < 0:
        raise ValueError(f"{int((array < 0).sum())} of {array.size} {name} are negative; number the classes from 0.")
    return array


# copied: the same in every formula that needs it
def _whole(value):
    return isinstance(value, numbers.Real) and abs(value) <= 2**53 and float(value).is_integer()


def _probabilities(values):
    """Rows of probabilities (n, K) that sum to 1, or a ValueError that counts those that do not."""
    try:
        table = np.asarray(values)
    except ValueError:
        raise ValueError("the rows of probabilities have different lengths; the shape has to be (n, K).") from None
    if table.ndim != 2 or table.shape[1] < 2 or table.dtype.kind not in "iuf":
        raise ValueError(
            f"probabilities have shape {table.shape} and type {table.dtype}; give numbers of shape (n, K)."
        )
    table = table.astype(np.float64)
    outside = int(np.sum(~((table >= 0) & (table <= 1)).all(axis=1)))
    if outside:
        raise ValueError(f"{outside} of {len(table)} rows have a probability that is not a number in [0, 1].")
    off = int(np.sum(np.abs(table.sum(axis=1) - 1) > 1e-3))
    if off:
        raise ValueError(f"the probabilities of {off} of {len(table)} rows do not sum to 1.")
    return table


def _inputs(references, predictions, probabilities):
    truth = _codes(references, "references")
    if probabilities is None and np.ndim(predictions) == 2:
        probabilities = predictions
        predictions = _probabilities(probabilities).argmax(axis=1)
    guess = _codes(predictions, "predictions")
    table = None if probabilities is None else _probabilities(probabilities)
    for name, size in (
        ("predictions", len(guess)),
        ("rows of probabilities", truth.size if table is None else len(table)),
    ):
        if size != truth.size:
            raise ValueError(f"{truth.size} references but {size} {name}; give one per reference.")
    if table is not None and truth.max() >= table.shape[1]:
        beyond = int((truth >= table.shape[1]).sum())
        raise ValueError(
            f"{beyond} of {truth.size} references are beyond the {table.shape[1]} classes with probabilities."
        )
    return truth, guess, table


def _areas(scores, positive, weights):
    """AUROC and average precision of one class against the rest in each resample, (B,) each; ties count half."""
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.diff(scores[order], append=np.nan) != 0)  # of each run of equal scores
    rows = weights.take(order, axis=1, mode="clip")
    taken = np.cumsum(rows, axis=1).take(last, axis=1, mode="clip")
    rows *= positive[order]
    found = np.cumsum(rows, axis=1).take(last, axis=1, mode="clip")
    hits, false = np.diff(found, axis=1, prepend=0), taken - found
    total, rest = found[:, -1], false[:, -1]
    below = rest[:, None] - (false + np.hstack([np.zeros((len(false), 1)), false[:, :-1]])) / 2
    auroc = np.einsum("bu,bu->b", hits, below) / (total * rest)
    precision = np.divide(found, taken, out=np.zeros_like(found), where=taken > 0)
    return auroc, np.where(rest > 0, np.einsum("bu,bu->b", hits, precision) / total, np.nan)


def _mean_of_defined(columns):
    """Mean over classes where it is defined, (B,); NaN where no class has one."""
    table = np.stack(columns)
    known = ~np.isnan(table)
    return np.where(known, table, 0).sum(axis=0) / known.sum(axis=0)


def _calibration_error(table, truth, weights):
    """Expected calibration error in each resample, (B,), over equal bins (low, high] of the highest probability."""
    confidence, correct = table.max(axis=1), table.argmax(axis=1) == truth
    place = np.clip(np.searchsorted(np.linspace(0, 1, BINS + 1), confidence, side="left") - 1, 0, BINS - 1)
    gaps = np.zeros((truth.size, BINS))
    gaps[np.arange(truth.size), place] = correct - confidence
    return np.abs(weights @ gaps).sum(axis=1) / weights.sum(axis=1)


def compute_resamples(references, predictions, weights, probabilities=None, areas=True):
    """The report of many weighted versions of the same rows at once.

    Args:
        references: true classes, (n,), whole numbers from 0.
        predictions: predicted classes, (n,), or probabilities, (n, K).
        weights: how often each row counts, (B, n), not negative; a bootstrap resample is a row of multiplicities.
        probabilities: (n, K) of the classes 0 to K-1; None where there are none.
        areas: whether AUROC and AUPRC are wanted, which cost far more than all the rest; else they are NaN.

    Returns:
        The seven numbers, (B,) float64 each; NaN where undefined.
    """
    truth, guess, table = _inputs(references, predictions, probabilities)
    weights = np.asarray(weights, dtype=np.float64)
    n = weights.sum(axis=1)
    classes = np.unique(truth)
    member = (truth[:, None] == classes).astype(np.float64)
    correct = (truth == guess).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        size = weights @ member
        recall = (weights @ (member * correct[:, None])) / size
        found = {"accuracy": weights @ correct / n, "balanced_accuracy": _mean_of_defined(recall.T)}
        if table is None:
            return found | {key: np.full(len(n), np.nan) for key in ("auroc", "auprc", "brier", "nll", "ece")}
        one_hot = np.eye(table.shape[1])[truth]
        squares = ((table - one_hot) ** 2).sum(axis=1) / (2 if table.shape[1] == 2 else 1)
        likelihood = np.clip(table[np.arange(truth.size), truth], np.finfo(np.float64).eps, 1)
        rated = [1] if table.shape[1] == 2 else classes
        rated = [_areas(table[:, label], truth == label, weights) for label in rated if areas]
        return found | {
            "auroc": _mean_of_defined([auroc for auroc, _ in rated]) if areas else np.full(len(n), np.nan),
            "auprc": _mean_of_defined([auprc for _, auprc in rated]) if areas else np.full(len(n), np.nan),
            "brier": weights @ squares / n,
            "nll": weights @ -np.log(likelihood) / n,
            "ece": _calibration_error(table, truth, weights),
        }


def compute(references, predictions, probabilities=None):
    """Accuracy, balanced accuracy, AUROC, AUPRC, Brier score, NLL and ECE.

    Args:
        references: true classes, (n,), whole numbers from 0.
        predictions: predicted classes, (n,); or probabilities, (n, K), of which the first highest is the predicted class.
        probabilities: (n, K) beside predicted classes, such as those of another threshold; AUROC to ECE use only them.

    Returns:
        `accuracy`, `balanced_accuracy`, `auroc`, `auprc`, `brier`, `nll`, `ece`; NaN where undefined.

    Raises:
        ValueError: labels or probabilities are missing or impossible, or the lengths differ; the message counts them.
    """
    truth, guess, table = _inputs(references, predictions, probabilities)
    found = compute_resamples(truth, guess, np.ones((1, truth.size)), table)
    return {key: float(values[0]) for key, values in found.items()}
