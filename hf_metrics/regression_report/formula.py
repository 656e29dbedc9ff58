"""Usual metrics of a regression besides the mean absolute error."""

import numbers

import numpy as np
from scipy import sparse

GROSS = "none: a single gross error in fifty changes it so much that an interval would mislead"
_CORRELATION = {"better": "higher", "range": (-1, 1), "interval": GROSS, "shown": "further"}
_LIMIT = {"better": None, "unit": "label", "interval": GROSS}
NUMBERS = {
    "rmse": {"better": "lower", "range": (0, np.inf), "unit": "label", "interval": GROSS, "shown": "further"},
    "nmae": {"better": "lower", "range": (0, np.inf), "interval": GROSS, "constant": "median", "shown": "no"},
    "r2": {"better": "higher", "range": (-np.inf, 1), "interval": GROSS, "shown": "further"},
    "pearson": _CORRELATION,
    "spearman": _CORRELATION,
    "concordance": _CORRELATION,
    "bias": {"better": None, "unit": "label", "interval": "t", "perfect": 0},
    "agreement_low": _LIMIT,
    "agreement_high": _LIMIT,
}
NO_DIRECTION = "it has no direction"
LIMITS = 1.96  # Half-width of the limits of agreement in standard deviations of the difference (Bland and Altman 1986).


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


def _range(truth, value_range):
    if value_range is None:
        return np.ptp(truth)
    if not value_range > 0:
        raise ValueError(f"value_range is {value_range}; give a positive number in the unit of the values, or None.")
    return value_range


def _runs(values):
    """Return the index of each row among the distinct values, (n,), and the same as a matrix (u, n)."""
    distinct, place = np.unique(values, return_inverse=True)
    ones = np.ones(values.size)
    return place, sparse.csr_array((ones, (place, np.arange(values.size))), shape=(distinct.size, values.size))


def _ranks(members, weights):
    """Rank distinct values in each resample, with average ranks for ties, as 2 rank - 1.

    Args:
        members: Mask of the rows with each distinct value, shape (u, n).
        weights: Weights of the rows, shape (n, B).

    Returns:
        The rank of each distinct value in each resample, (u, B), with mean N for a total weight of N; the sum of
        squares of the ranks, (B,); whether all rows of the resample have the same value, (B,).
    """
    sizes = members @ weights
    ranks = np.cumsum(sizes, axis=0)
    ranks *= 2
    ranks -= sizes
    return ranks, np.einsum("ub,ub,ub->b", sizes, ranks, ranks), np.count_nonzero(sizes, axis=0) < 2


def compute_resamples(references, predictions, weights, value_range=None):
    """Compute the report for many weightings of the same rows at once.

    Args:
        references: Measured values, (n,).
        predictions: Predicted values in the same unit, (n,).
        weights: Multiplicity of each row in each of B resamples, (B, n), not negative.
        value_range: Divisor of NMAE; None means the range of all references, the same for every resample.

    Returns:
        `rmse`, `nmae`, `r2`, `pearson`, `spearman`, `concordance`, `bias`, `agreement_low`, `agreement_high`, (B,)
        float64 each; NaN if undefined.
    """
    truth, guess = _pair(references, predictions)
    weights = np.asarray(weights, dtype=np.float64)
    error, x, y = guess - truth, truth - truth.mean(), guess - guess.mean()
    with np.errstate(over="ignore", invalid="ignore"):
        columns = np.column_stack([np.ones(truth.size), error, np.abs(error), error**2, x, y, x * x, y * y, x * y])
        n, signed, absolute, squared, x, y, xx, yy, xy = (weights @ columns).T
    weights = np.ascontiguousarray(weights.T)  # Transposed, so sums over rows run along contiguous resamples.
    (place, same_truth), (_, same_guess) = _runs(truth), _runs(guess)
    x_rank, x_squares, x_constant = _ranks(same_truth, weights)
    y_rank, y_squares, y_constant = _ranks(same_guess, weights)
    ranked = weights * x_rank.take(place, axis=0, mode="clip")
    rank_products = np.einsum("ub,ub->b", same_guess @ ranked, y_rank)
    limit = _range(truth, value_range)
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = n**3  # The n rows have ranks with mean n.
        variation = xx - x * x / n
        pearson = (xy - x * y / n) / np.sqrt(variation * (yy - y * y / n))
        spearman = (rank_products - shift) / np.sqrt((x_squares - shift) * (y_squares - shift))
        undefined = x_constant | y_constant
        bias = signed / n
        reach = LIMITS * np.sqrt(np.maximum(squared - n * bias**2, 0) / (n - 1))
        return {
            "rmse": np.sqrt(squared / n),
            "nmae": absolute / n / (limit if limit > 0 else np.nan),
            "r2": np.where(x_constant, np.nan, 1 - squared / variation),
            "pearson": np.where(undefined, np.nan, np.clip(pearson, -1, 1)),
            "spearman": np.where(undefined, np.nan, np.clip(spearman, -1, 1)),
            "concordance": np.where(
                x_constant & y_constant,
                np.nan,
                2 * (xy - x * y / n) / (variation + yy - y * y / n + n * bias**2),
            ),
            "bias": bias,
            "agreement_low": bias - reach,
            "agreement_high": bias + reach,
        }


def floor(references, classes=0):
    """Return the best expected scores without looking at the recording, and the strategy for each."""
    if classes:
        return {}
    error, width = np.abs(references - np.median(references)).mean(), np.ptp(references)
    return {
        "rmse": (references.std(), "the mean of the test values"),
        "nmae": (error / width if width > 0 else np.nan, "the median of the test values"),
        "r2": (0.0, "the mean of the test values"),
        "pearson": (0.0, "any order"),
        "spearman": (0.0, "any order"),
        "concordance": (0.0, "any order"),
        "bias": (np.nan, NO_DIRECTION),
        "agreement_low": (np.nan, NO_DIRECTION),
        "agreement_high": (np.nan, NO_DIRECTION),
    }


def worst(references, predictions, value_range=None):
    """Return the largest bias of a patient: the distance of the farthest reference from the median."""
    truth, _ = _pair(references, predictions)
    return {"bias": float(np.abs(truth - np.median(truth)).max())}


def influence(references, predictions, value_range=None):
    """Compute the derivative of each metric with respect to the weight of each row, for its standard error.

    Args:
        references: Measured values, (n,).
        predictions: Predicted values in the same unit, (n,).
        value_range: Range of the values, as in `compute`.

    Returns:
        {key: (n,)}; NaN if the number is undefined.
    """
    truth, guess = _pair(references, predictions)
    n, error = truth.size, guess - truth
    absolute, squared, bias = np.abs(error), error**2, error.mean()
    x, y = truth - truth.mean(), guess - guess.mean()
    xx, yy, xy = (x * x).mean(), (y * y).mean(), (x * y).mean()
    limit = _range(truth, value_range)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.sqrt(((error - bias) ** 2).sum() / (n - 1))
        slope = ((error - bias) ** 2 - spread**2) / (2 * spread * (n - 1))
        total = xx + yy + bias**2
        concordance = 2 * xy / total
        growth = x * x + y * y - xx - yy + 2 * bias * (error - bias)
        return {
            "rmse": (squared - squared.mean()) / (2 * n * np.sqrt(squared.mean())),
            "nmae": (absolute - absolute.mean()) / n / (limit if limit > 0 else np.nan),
            "r2": -(squared - squared.mean() / xx * x * x) / (n * xx),
            "pearson": _correlation_influence(x, y),
            "spearman": _rank_influence(truth, guess),
            "concordance": (2 * (x * y - xy) - concordance * growth) / total / n,
            "bias": (error - bias) / n,
            "agreement_low": (error - bias) / n - LIMITS * slope,
            "agreement_high": (error - bias) / n + LIMITS * slope,
        }


def _correlation_influence(x, y):
    """Compute the influence of rows on the correlation of two centred columns. Returns an array (n,)."""
    x, y = x / np.sqrt((x * x).mean()), y / np.sqrt((y * y).mean())
    return (x * y - (x * y).mean() * (x * x + y * y) / 2) / x.size


def _rank_influence(truth, guess):
    """Compute the influence of rows on Spearman's correlation, both directly and through the ranks of other rows."""
    (u, above_x), (v, above_y) = _centred_ranks(truth), _centred_ranks(guess)
    uv, uu, vv = (u * v).mean(), (u * u).mean(), (v * v).mean()
    both = u * v + above_x(v) + above_y(u) - 3 * uv
    of_x, of_y = u * u + 2 * above_x(u) - 3 * uu, v * v + 2 * above_y(v) - 3 * vv
    return (both / np.sqrt(uu * vv) - uv / np.sqrt(uu * vv) / 2 * (of_x / uu + of_y / vv)) / u.size


def _centred_ranks(values):
    """Compute centred fractional mid-ranks, (n,), and the mean of a column over higher rows (ties count half)."""
    _, place, sizes = np.unique(values, return_inverse=True, return_counts=True)
    below = np.cumsum(sizes)

    def above(column):
        sums = np.bincount(place, column, minlength=sizes.size)
        return ((sums.sum() - np.cumsum(sums) + sums / 2) / values.size)[place]

    return ((below - sizes / 2) / values.size)[place] - 0.5, above


def compute(references, predictions, value_range=None):
    """Compute RMSE, NMAE, R2, Pearson, Spearman and concordance correlation, bias and limits of agreement.

    Args:
        references: Measured values, (n,), finite.
        predictions: Predicted values in the same unit, (n,), finite.
        value_range: Divisor of NMAE; None means the range of the references.

    Returns:
        `rmse`, `nmae`, `r2`, `pearson`, `spearman`, `concordance` (Lin 1989), `bias` (mean of prediction minus
        reference), `agreement_low` and `agreement_high` (bias -+ 1.96 standard deviations); NaN if undefined.

    Raises:
        ValueError: Values are missing, not finite or not numbers, or lengths differ; the message counts them.
    """
    truth, guess = _pair(references, predictions)
    found = compute_resamples(truth, guess, np.ones((1, truth.size)), value_range)
    return {key: float(values[0]) for key, values in found.items()}
