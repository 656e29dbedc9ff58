"""Mean absolute error, in the unit of the values."""

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


# Copied: formulas are self-contained, and all copies are identical.
def _numbers(values, name):
    """Check numbers (n,), finite float64; raise a ValueError with the number of invalid ones."""
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
        raise ValueError(f"some of the {array.size} {name} exceed the range of float64.") from None
    bad = int(np.sum(~np.isfinite(array)))
    if bad:
        raise ValueError(
            f"{bad} of {array.size} {name} are not finite; every row needs a number, and no row is skipped."
        )
    return array


def _pair(references, predictions):
    truth, guess = _numbers(references, "references"), _numbers(predictions, "predictions")
    if truth.size != guess.size:
        raise ValueError(f"{truth.size} references but {guess.size} predictions; give one prediction per reference.")
    if truth.size == 0:
        raise ValueError("0 references: there is nothing to score.")
    return truth, guess


def floor(references, classes=0):
    """Return the best expected score without looking at the recording, and the strategy."""
    if classes:
        return {}
    return {"mae": (np.abs(references - np.median(references)).mean(), "the median of the test values")}


def per_row(references, predictions):
    """Compute the absolute error of each row. Returns an array (n,)."""
    truth, guess = _pair(references, predictions)
    return {"mae": np.abs(guess - truth)}


def worst(references, predictions):
    """Return the largest possible error of a patient: the distance of the farthest reference from the median."""
    truth, _ = _pair(references, predictions)
    return {"mae": float(np.abs(truth - np.median(truth)).max())}


def influence(references, predictions):
    """Compute the derivative of the MAE with respect to the weight of each row. Returns an array (n,)."""
    error = per_row(references, predictions)["mae"]
    return {"mae": (error - error.mean()) / error.size}


def compute_resamples(references, predictions, weights):
    """Compute the MAE for many weightings of the same rows at once.

    Args:
        references: Measured values, (n,).
        predictions: Predicted values in the same unit, (n,).
        weights: Multiplicity of each row in each of B resamples, (B, n), not negative.

    Returns:
        `mae`, (B,) float64; NaN if all weights are zero.
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
        ValueError: Values are missing, not finite or not numbers, or lengths differ; the message counts them.
    """
    truth, guess = _pair(references, predictions)
    return {"mae": float(compute_resamples(truth, guess, np.ones((1, truth.size)))["mae"][0])}
