"""Calibration slope and intercept of a binary classifier: agreement of its probabilities with observed frequencies."""

import numbers

import numpy as np

_MEAN = {"better": None, "range": (0, 1), "unit": "fraction", "interval": "none: compare the two means"}
NUMBERS = {
    "calibration_slope": {"better": None, "perfect": 1, "interval": "t", "shown": "further"},
    "calibration_intercept": {"better": None, "perfect": 0, "interval": "t", "shown": "further"},
    "mean_probability": _MEAN,
    "observed_share": _MEAN,
}
VERSION = 2
SMALLEST = 1e-6  # Probabilities closer to 0 or 1 are clipped to these bounds, so that their log odds are finite.
STEPS, LARGEST = (
    50,
    1e3,
)  # Maximum number of Newton steps, and the coefficient beyond which the classes count as separated.


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
    """Return true classes, and log odds of class 1 or None."""
    truth = _codes(references, "references")
    if probabilities is None and np.ndim(predictions) == 2:
        probabilities = predictions
    elif len(guess := _codes(predictions, "predictions")) != truth.size:
        raise ValueError(f"{truth.size} references but {len(guess)} predictions; give one per reference.")
    if probabilities is None:
        return truth, None
    table = _probabilities(probabilities, classes is None)
    if len(table) != truth.size:
        raise ValueError(f"{truth.size} references but {len(table)} rows of probabilities; give one per reference.")
    if truth.max() >= table.shape[1]:
        beyond = int((truth >= table.shape[1]).sum())
        raise ValueError(f"{beyond} of {truth.size} references are beyond the {table.shape[1]} classes.")
    if table.shape[1] != 2:
        return truth, None
    share = np.clip(table[:, 1], SMALLEST, 1 - SMALLEST)
    return truth, np.log(share / (1 - share))


def _fit(columns, offset, truth):
    """Fit a logistic regression by Newton's method; return coefficients, residuals and curvature, or None."""
    beta = np.zeros(columns.shape[1])
    for _ in range(STEPS):
        mean = 1 / (1 + np.exp(-np.clip(columns @ beta + offset, -500, 500)))
        curvature = (columns * (mean * (1 - mean))[:, None]).T @ columns
        if np.linalg.cond(curvature) > 1e12:
            return None
        step = np.linalg.solve(curvature, columns.T @ (truth - mean))
        beta = beta + step
        if np.abs(beta).max() > LARGEST:
            return None
        if np.abs(step).max() < 1e-10:
            return beta, truth - mean, curvature
    return None


def _models(truth, odds):
    """Set up the two fits: {key: (index of the coefficient, columns, offset)}."""
    ones = np.ones((truth.size, 1))
    return {
        "calibration_slope": (1, np.column_stack([ones, odds]), 0.0),
        "calibration_intercept": (0, ones, odds),
    }


def influence(references, predictions, probabilities=None, classes=None):
    """Compute the derivative of slope and intercept with respect to the weight of each row. Each has the shape (n,).

    NaN if undefined.
    """
    truth, odds = _inputs(references, predictions, probabilities, classes)
    if odds is None:
        return {}
    found = {}
    for key, (place, columns, offset) in _models(truth, odds).items():
        fit = _fit(columns, offset, truth)
        found[key] = np.full(truth.size, np.nan)
        if fit is not None:
            _, residuals, curvature = fit
            found[key] = np.linalg.solve(curvature, (columns * residuals[:, None]).T)[place]
    return found


def compute(references, predictions, probabilities=None, classes=None):
    """Compute calibration slope and intercept of a binary classifier (Cox 1958; Van Calster et al. 2019).

    Args:
        references: True classes, (n,), 0 or 1.
        predictions: Probabilities of both classes, (n, 2); or predicted classes, (n,), together with `probabilities`.
        probabilities: Probabilities of both classes, (n, 2).
        classes: Number of classes if answers can be outside of them, so that the probabilities of a row sum to at most
            1; None otherwise.

    Returns:
        `calibration_slope`: coefficient in a logistic regression of the truth on the log odds, 1 if perfect, below 1 if
            probabilities are too extreme; `calibration_intercept`: intercept with the slope fixed at 1, 0 if perfect,
            above 0 if probabilities are too low. Both are NaN without probabilities of two classes, if one class is
            missing, or if the probabilities separate the classes. `mean_probability` of class 1 and `observed_share`,
            the share of rows with class 1, are equal if the probabilities are correct on average.

    Raises:
        ValueError: Labels or probabilities are missing or invalid, or lengths differ; the message counts them.
    """
    truth, odds = _inputs(references, predictions, probabilities, classes)
    nan = {key: float("nan") for key in NUMBERS}
    if odds is None:
        return nan
    means = {"mean_probability": float((1 / (1 + np.exp(-odds))).mean()), "observed_share": float(truth.mean())}
    if np.ptp(truth) == 0:
        return {**nan, **means}
    fits = {
        key: (place, _fit(columns, offset, truth)) for key, (place, columns, offset) in _models(truth, odds).items()
    }
    return {key: nan[key] if fit is None else float(fit[0][place]) for key, (place, fit) in fits.items()} | means
