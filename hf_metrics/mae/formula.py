"""Mean absolute error of a measurement, in the unit of the measurement."""

import numbers

import numpy as np

NUMBERS = {
    "mae": {
        "better": "lower",
        "range": (0, np.inf),
        "unit": "label",
        "interval": "log_t",
        "constant": "median",
        "failed": {"%": 15, "mm": 10, "cm": 1, "years": 20},
    },
}


# Copied: identical in every formula that needs it.
def _numbers(values, name):
    """Check numbers, one finite float64 per row; raise a ValueError that counts the invalid ones."""
    array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise ValueError(f"{name} have shape {array.shape}; give one number per row, shape (n,).")
    if array.dtype.kind not in "iuf":
        odd = [value for value in array if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real)]
        if odd:
            raise ValueError(f"{len(odd)} of {array.size} {name} are not numbers (first: {odd[0]!r}).")
    try:
        array = array.astype(np.float64)
    except OverflowError:
        raise ValueError(f"some of the {array.size} {name} are larger than a float64 can be.") from None
    bad = int(np.sum(~np.isfinite(array)))
    if bad:
        raise ValueError(f"{bad} of {array.size} {name} are not finite; every row needs a number, none is skipped.")
    return array


def _pair(references, predictions):
    truth, guess = _numbers(references, "references"), _numbers(predictions, "predictions")
    if truth.size != guess.size:
        raise ValueError(f"{truth.size} references but {guess.size} predictions; give one prediction per reference.")
    if truth.size == 0:
        raise ValueError("0 references: there is nothing to score.")
    return truth, guess


def floor(references, classes=0):
    """Return the best expected score of answers that ignore the recording, and the strategy that reaches it."""
    if classes:
        return {}
    return {"mae": (np.abs(references - np.median(references)).mean(), "the median of the test values")}


def per_row(references, predictions):
    """Compute the absolute error of each row, (n,)."""
    truth, guess = _pair(references, predictions)
    return {"mae": np.abs(guess - truth)}


def worst(references, predictions):
    """Return the error of a patient who is as wrong as can be: the distance of the farthest reference from the median."""
    truth, _ = _pair(references, predictions)
    return {"mae": float(np.abs(truth - np.median(truth)).max())}


def influence(references, predictions):
    """Compute the derivative of the MAE by the weight of each row, (n,), for its standard error."""
    error = per_row(references, predictions)["mae"]
    return {"mae": (error - error.mean()) / error.size}


def compute_resamples(references, predictions, weights):
    """Compute the MAE of many weighted versions of the same rows at once.

    Args:
        references: Measured values, (n,).
        predictions: Predicted values in the same unit, (n,).
        weights: Multiplicity of each row, shape (B, n), not negative; a bootstrap resample is a row of
            multiplicities.

    Returns:
        `mae`, (B,) float64; NaN where a row of weights is all zero.
    """
    truth, guess = _pair(references, predictions)
    sums = np.asarray(weights, dtype=np.float64) @ np.column_stack([np.abs(guess - truth), np.ones(truth.size)])
    with np.errstate(invalid="ignore"):
        return {"mae": sums[:, 0] / sums[:, 1]}


def compute(references, predictions):
    """Compute the mean absolute error.

    Args:
        references: Measured values, (n,), finite.
        predictions: Predicted values in the same unit, (n,), finite.

    Returns:
        `mae` in the unit of the values, in [0, inf).

    Raises:
        ValueError: Values are missing, not finite, not numbers, or the lengths differ; the message counts them.
    """
    truth, guess = _pair(references, predictions)
    return {"mae": float(compute_resamples(truth, guess, np.ones((1, truth.size)))["mae"][0])}
