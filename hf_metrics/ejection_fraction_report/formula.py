"""Sensitivity and specificity of a predicted ejection fraction at the thresholds for treatment: 40 % and 50 %."""

import numbers

import numpy as np

KEYS = ("sensitivity_le_40", "specificity_le_40", "sensitivity_lt_50", "specificity_lt_50")
NEAR = 5
"""Tolerance of `within_5_points`, in percentage points."""
WITHIN = f"within_{NEAR}_points"
NUMBERS = {
    key: {"better": "higher", "range": (0, 1), "unit": "fraction", "interval": "share"} for key in (*KEYS, WITHIN)
}
VERSION = 2


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


def _rows(references, predictions):
    """Return {key: (rows in the denominator of a share, correct rows)}. Each is bool (n,)."""
    truth, guess = _numbers(references, "references"), _numbers(predictions, "predictions")
    if truth.size != guess.size:
        raise ValueError(f"{truth.size} references but {guess.size} predictions; give one prediction per reference.")
    if truth.size == 0:
        raise ValueError("0 references: there is nothing to score.")
    found = {}
    for name, low, said in (("le_40", truth <= 40, guess <= 40), ("lt_50", truth < 50, guess < 50)):
        found[f"sensitivity_{name}"] = low, said & low
        found[f"specificity_{name}"] = ~low, ~said & ~low
    return {**found, WITHIN: (np.ones(truth.size, dtype=bool), np.abs(guess - truth) <= NEAR)}


def support(references, predictions):
    """Return the rows in the denominator of each share. The array is bool (n,)."""
    return {key: rows for key, (rows, _) in _rows(references, predictions).items()}


def floor(references, classes=0):
    """Return NaN as the floor of each share, because a constant answer can make each share perfect."""
    return {WITHIN: (np.nan, "read it together with the mean absolute error")} | dict.fromkeys(
        KEYS, (np.nan, "a constant answer reaches 1: read sensitivity and specificity together")
    )


def influence(references, predictions):
    """Compute the derivative of each share with respect to the weight of each row.

    Returns an array (n,); NaN if undefined.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            key: np.where(rows, right - right.sum() / rows.sum(), 0) / rows.sum()
            for key, (rows, right) in _rows(references, predictions).items()
        }


def compute(references, predictions):
    """Compute sensitivity and specificity of a predicted ejection fraction at the thresholds of heart failure.

    Args:
        references: Measured ejection fractions in %, (n,), finite.
        predictions: Predicted ejection fractions in %, (n,), finite.

    Returns:
        `sensitivity_le_40`: share of patients at 40 % or less with a prediction of 40 % or less; `specificity_le_40`:
            share of all others with a prediction above 40 %; `sensitivity_lt_50`, `specificity_lt_50`: the same for
            below 50 %. NaN if the denominator is 0.
        `within_5_points`: share of predictions within five percentage points.

    Raises:
        ValueError: Values are missing, not finite, not numbers, or the lengths differ; the message counts them.
    """
    rows = _rows(references, predictions)
    return {key: float(right.sum() / of.sum()) if of.any() else float("nan") for key, (of, right) in rows.items()}
