"""Usual metrics of a classifier besides macro F1: decisions, ranking and calibration."""

import numbers

import numpy as np

OF_PROBABILITIES = ("auroc", "auprc", "brier", "nll", "ece")
_SHARE = {"better": "higher", "range": (0, 1), "unit": "fraction"}
_FURTHER = {**_SHARE, "interval": "smoothed", "shown": "further"}
NUMBERS = {
    "accuracy": {**_FURTHER, "one_class": True},
    "balanced_accuracy": _FURTHER,
    "mcc": {"better": "higher", "range": (-1, 1), "interval": "smoothed", "shown": "no"},
    "sensitivity": {**_SHARE, "interval": "share"},
    "specificity": {**_SHARE, "interval": "share"},
    "ppv": _FURTHER,
    "npv": _FURTHER,
    "auroc": {**_SHARE, "interval": "newcombe"},
    "auprc": {**_SHARE, "interval": "average_precision", "shown": "further"},
    "brier": {"better": "lower", "range": (0, 2), "interval": "log_t", "shown": "further"},
    "nll": {"better": "lower", "range": (0, np.inf), "interval": "log_t", "shown": "no"},
    "ece": {
        "better": "lower",
        "range": (0, 1),
        "interval": "none: biased upwards in small samples, so an interval would mislead",
        "shown": "no",
    },
}
BINS = 15
MEAN = "biased upwards if few patients have a label: read the mean AUROC"
ALONE = "a constant answer reaches 1: read sensitivity and specificity together"


# Copied: formulas are self-contained, and all copies are identical.
def _codes(values, name):
    """Check class codes (n,), whole numbers from 0; raise a ValueError with the number of invalid ones."""
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


# Copied: formulas are self-contained, and all copies are identical.
def _whole(value):
    return isinstance(value, numbers.Real) and abs(value) <= 2**53 and float(value).is_integer()


# Copied: formulas are self-contained, and all copies are identical.
def _probabilities(values, whole=True):
    """Check probabilities (n, K) whose rows sum to 1, or to at most 1 unless `whole`; raise a ValueError with the number of invalid rows."""
    try:
        table = np.asarray(values)
    except ValueError:
        raise ValueError("the rows of probabilities have different lengths; the shape must be (n, K).") from None
    if table.ndim != 2 or table.shape[1] < 2 or table.dtype.kind not in "iuf":
        raise ValueError(
            f"probabilities have shape {table.shape} and type {table.dtype}; give numbers of shape (n, K)."
        )
    table = table.astype(np.float64)
    outside = int(np.sum(~((table >= 0) & (table <= 1)).all(axis=1)))
    if outside:
        raise ValueError(f"{outside} of {len(table)} rows have a probability that is not a number in [0, 1].")
    excess = table.sum(axis=1) - 1
    off = int(np.sum((np.abs(excess) if whole else excess) > 1e-3))
    if off:
        raise ValueError(
            f"the probabilities of {off} of {len(table)} rows do not sum to {'' if whole else 'at most '}1."
        )
    return table


def _inputs(references, predictions, probabilities, classes=None):
    truth = _codes(references, "references")
    if probabilities is None and np.ndim(predictions) == 2:
        probabilities = predictions
        predictions = _probabilities(probabilities, classes is None).argmax(axis=1)
    guess = _codes(predictions, "predictions")
    table = None if probabilities is None else _probabilities(probabilities, classes is None)
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
    """Compute AUROC and average precision of a class against the rest in each resample. Each has the shape (B,)."""
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.diff(scores[order], append=np.nan) != 0)  # Sums over equal scores.
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


def _mean_of_defined(values):
    """Mean over the last axis (classes) where it is defined; NaN where no class has one."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(known, values, 0).sum(axis=-1) / known.sum(axis=-1)


def _calibration_error(table, truth, weights):
    """Compute the expected calibration error of each resample, (B,), in equal bins (low, high] of the top score."""
    confidence, correct = table.max(axis=1), table.argmax(axis=1) == truth
    place = np.clip(np.searchsorted(np.linspace(0, 1, BINS + 1), confidence, side="left") - 1, 0, BINS - 1)
    gaps = np.zeros((truth.size, BINS))
    gaps[np.arange(truth.size), place] = correct - confidence
    return np.abs(weights @ gaps).sum(axis=1) / weights.sum(axis=1)


def from_tables(tables, present):
    """Compute the metrics of a confusion table.

    With two classes, sensitivity, specificity and predictive values refer to class 1. With more classes, they are
    averages over the classes, each against the rest.

    Args:
        tables: (..., K, K) counts or weights, true class by predicted class; (..., K, K + 1) if the last column counts
            answers outside the classes. Such an answer is right for no class: it is no hit, and no correct rejection.
        present: Classes to average over, bool (K,): those of the whole test set, even if a table lacks some.

    Returns:
        {key: (...) float64}; NaN if undefined, such as the positive predictive value of a class that is never
        predicted.
    """
    tables = np.asarray(tables, dtype=np.float64)
    inside = tables[..., : tables.shape[-2]]
    hits, true, said, answers = np.einsum("...ii->...i", inside), tables.sum(-1), inside.sum(-2), tables.sum(-2)
    n = true.sum(-1)
    rated = np.flatnonzero(present) if len(present) > 2 else np.array([1])
    # Sum over the other classes instead of subtracting from the total, which could leave rounding errors.
    others = 1 - np.eye(tables.shape[-2])
    not_true, not_said = true @ others, said @ others
    rest = np.einsum("...ik,ki->...i", others @ inside, others)
    with np.errstate(invalid="ignore", divide="ignore"):
        correct = hits.sum(-1)
        spread = (answers * (answers @ (1 - np.eye(tables.shape[-1])))).sum(-1) * (true * not_true).sum(-1)
        return {
            "accuracy": correct / n,
            "balanced_accuracy": _mean_of_defined((hits / true)[..., present]),
            "mcc": np.where(spread > 0, (correct * n - (said * true).sum(-1)) / np.sqrt(spread), np.nan),
            "sensitivity": _mean_of_defined((hits / true)[..., rated]),
            "specificity": _mean_of_defined((rest / not_true)[..., rated]),
            "ppv": _mean_of_defined((hits / said)[..., rated]),
            "npv": _mean_of_defined((rest / not_said)[..., rated]),
        }


def influence(references, predictions, probabilities=None, classes=None):
    """Compute the derivative of rates and of probability-based metrics with respect to the weight of each row.

    Returns:
        `sensitivity`, `specificity` and, with probabilities, `auroc`, `auprc`, `brier`, `nll`, (n,) each; NaN where
        undefined.
    """
    truth, guess, table = _inputs(references, predictions, probabilities, classes)
    size = _number_of_classes(truth, guess, table, classes)
    rated = _rated(truth, size)
    rates = {
        "sensitivity": [_share_influence(truth == label, guess == label) for label in rated],
        "specificity": [_share_influence(truth != label, (guess != label) & (guess < size)) for label in rated],
    }
    found = {key: _mean_of_defined(np.stack(columns, axis=-1)) for key, columns in rates.items()}
    if table is None:
        return found
    squares, surprise = _losses(truth, table)
    auroc, auprc = zip(*(area_influence(table[:, label], truth == label) for label in rated), strict=True)
    return found | {
        "auroc": _mean_of_defined(np.stack(auroc, axis=-1)),
        "auprc": _mean_of_defined(np.stack(auprc, axis=-1)),
        "brier": (squares - squares.mean()) / truth.size,
        "nll": (surprise - surprise.mean()) / truth.size,
    }


def _share_influence(rows, right):
    """Compute the derivative of the share of right rows with respect to the weight of each row, (n,); NaN without rows."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(rows, right - (right & rows).sum() / rows.sum(), 0) / rows.sum()


def support(references, predictions, probabilities=None, classes=None):
    """Return the rows of the class of two that a rate is about, and the positive rows that limit areas under curves.

    The arrays are bool (n,). For several classes, areas are limited by the rarest class, and rates are about all rows.
    """
    truth, guess, table = _inputs(references, predictions, probabilities, classes)
    if _number_of_classes(truth, guess, table, classes) == 2:
        positive = truth == 1
        return {"sensitivity": positive, "specificity": ~positive, "auroc": positive, "auprc": positive}
    sizes = np.bincount(truth)
    rarest = truth == np.argmin(np.where(sizes > 0, sizes, truth.size + 1))
    return {"auroc": rarest, "auprc": rarest}


def per_class(references, predictions, probabilities, classes=None):
    """Return whether each row has each class, and its class probabilities. Each has the shape (n, K)."""
    truth, _, table = _inputs(references, predictions, probabilities, classes)
    return np.eye(table.shape[1])[truth], table


def floor(references, classes):
    """Return the best expected scores without looking at the recording, and the strategy for each."""
    rates = np.bincount(references, minlength=classes) / len(references)
    known = rates[rates > 0]
    positive = rates[1] if classes == 2 else 1 / len(known)  # Mean rate of the classes, each against the rest.
    variance = (rates * (1 - rates)).sum()
    return {
        "accuracy": (rates.max(), "always the most frequent class"),
        "balanced_accuracy": (1 / len(known), "any guessing"),
        "mcc": (0.0, "any guessing"),
        "sensitivity": (np.nan, ALONE),
        "specificity": (np.nan, ALONE),
        "ppv": (positive, "any guessing"),
        "npv": (1 - positive, "any guessing"),
        "auroc": (0.5, "any order"),
        "auprc": (positive, "any order") if classes == 2 else (np.nan, MEAN),
        "brier": (variance / (2 if classes == 2 else 1), "the class rates as probabilities"),
        "nll": (-(known * np.log(known)).sum(), "the class rates as probabilities"),
        "ece": (np.nan, "predicting the class rates is perfectly calibrated but carries no information"),
    }


def _number_of_classes(truth, guess, table, classes):
    """Return the stated number of classes, else that of the probabilities, else the one that the codes imply."""
    if classes is not None:
        return classes
    return max(2, int(max(truth.max(), guess.max())) + 1 if table is None else table.shape[1])


def _rated(truth, classes):
    """Return the classes that are scored against the rest: class 1 of two, else those that occur."""
    return [1] if classes == 2 else np.unique(truth)


def _losses(truth, table):
    """Compute squared error and negative log-likelihood of each row. Each has the shape (n,)."""
    given = table[np.arange(truth.size), truth]
    squares = np.einsum("nk,nk->n", table, table) - 2 * given + 1
    return squares / (2 if table.shape[1] == 2 else 1), -np.log(np.clip(given, np.finfo(np.float64).eps, 1))


def area_influence(scores, positive):
    """Compute the influence of rows on AUROC and average precision of one class against the rest.

    Each has the shape (n,).
    """
    _, place, sizes = np.unique(
        -scores, return_inverse=True, return_counts=True
    )  # Groups of equal scores, highest first.
    hits = np.bincount(place, positive, minlength=sizes.size)
    misses, found, taken = sizes - hits, np.cumsum(hits), np.cumsum(sizes)
    total, rest = found[-1], taken[-1] - found[-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        above_rest = (rest - np.cumsum(misses) + misses / 2) / rest  # Fraction of the rest below a score.
        below_hits = (found - hits / 2) / total  # Fraction of the positives above it.
        auroc = (hits * above_rest).sum() / total
        precision = found / taken
        average = (hits * precision).sum() / total
        of_hit, of_miss = hits / taken, hits * found / taken**2
        after = np.cumsum((of_hit - of_miss)[::-1])[
            ::-1
        ]  # Contribution of a positive row to the precision of later ones.
        loss = np.cumsum(of_miss[::-1])[::-1]
        area = np.where(positive, (above_rest[place] - auroc) / total, (below_hits[place] - auroc) / rest)
        ranked = np.where(positive, precision[place] - average + after[place], -loss[place]) / total
    return area, ranked if rest > 0 else np.full(positive.size, np.nan)


def compute_resamples(references, predictions, weights, probabilities=None, areas=True, classes=None):
    """Compute the report for many weightings of the same rows at once.

    Args:
        references: True classes, (n,), whole numbers from 0.
        predictions: Predicted classes, (n,), or probabilities, (n, K).
        weights: Multiplicity of each row in each of B resamples, (B, n), not negative.
        probabilities: Probabilities of the classes 0 to K-1, (n, K), or None.
        areas: Whether to compute AUROC and AUPRC, which cost far more than all others; otherwise they are NaN.
        classes: Number of classes, K, if answers can be outside of them, as in `compute`.

    Returns:
        The twelve numbers, (B,) float64 each; NaN if undefined.
    """
    truth, guess, table = _inputs(references, predictions, probabilities, classes)
    weights = np.asarray(weights, dtype=np.float64)
    size = _number_of_classes(truth, guess, table, classes)
    answers = size if classes is None else size + 1
    cells = np.zeros((truth.size, size * answers))
    cells[np.arange(truth.size), truth * answers + np.minimum(guess, answers - 1)] = 1
    present = np.bincount(truth, minlength=size) > 0
    found = from_tables((weights @ cells).reshape(len(weights), size, answers), present)
    if table is None:
        return found | {key: np.full(len(weights), np.nan) for key in OF_PROBABILITIES}
    squares, surprise = _losses(truth, table)
    with np.errstate(invalid="ignore", divide="ignore"):
        n = weights.sum(axis=1)
        rated = [_areas(table[:, label], truth == label, weights) for label in _rated(truth, size) if areas]
        auroc, auprc = zip(*rated, strict=True) if rated else ([np.full(len(n), np.nan)],) * 2
        return found | {
            "auroc": _mean_of_defined(np.stack(auroc, axis=-1)),
            "auprc": _mean_of_defined(np.stack(auprc, axis=-1)),
            "brier": weights @ squares / n,
            "nll": weights @ surprise / n,
            "ece": _calibration_error(table, truth, weights),
        }


def compute(references, predictions, probabilities=None, classes=None):
    """Compute the twelve metrics of a classifier besides macro F1.

    Args:
        references: True classes, (n,), whole numbers from 0.
        predictions: Predicted classes, (n,); or probabilities, (n, K), the first highest of which is the predicted
            class.
        probabilities: Probabilities (n, K) if `predictions` are classes, such as those of another threshold; used only
            by AUROC, AUPRC, Brier, NLL and ECE.
        classes: Number of classes, K, if answers can be outside of them: a prediction of K or more is right for no class,
            and the probabilities of a row sum to at most 1. None if all predictions are classes.

    Returns:
        `accuracy`, `balanced_accuracy`, `mcc` (Matthews), `sensitivity`, `specificity`, `ppv`, `npv` (for class 1 of
        two, else averaged over classes), `auroc`, `auprc`, `brier`, `nll`, `ece`; NaN if undefined.

    Raises:
        ValueError: Labels or probabilities are missing or invalid, or lengths differ; the message counts them.
    """
    truth, guess, table = _inputs(references, predictions, probabilities, classes)
    found = compute_resamples(truth, guess, np.ones((1, truth.size)), table, classes=classes)
    return {key: float(values[0]) for key, values in found.items()}
