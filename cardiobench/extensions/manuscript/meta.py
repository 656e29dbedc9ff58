"""Combine scores of several sites by a random-effects model. Functions take arrays and round nothing."""

import math
import warnings
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from cardiobench.core.errors import BadData, MissingExtra

LEVEL = 0.95
DRAWS = 10_000
"""Number of draws of a prediction interval."""
FEWEST = 3
"""Smallest number of sites for a prediction interval."""


class Summary(NamedTuple):
    """Random-effects summary on the scale of the score.

    Attributes:
        value: Mean over sites.
        low: Lower end of its 95 % interval.
        high: Upper end.
        next_low: Lower end of the 95 % prediction interval, within which the score of a further site lies; NaN for
            fewer than three sites.
        next_high: Upper end.
        tau: Standard deviation between sites, on the scale of `scale`.
        i2: Share of the variation that is between sites, at least 0.
        sites: Number of sites.
        scale: logit, log or identity.
    """

    value: float
    low: float
    high: float
    next_low: float
    next_high: float
    tau: float
    i2: float
    sites: int
    scale: str


def combine(effects: np.ndarray, variances: np.ndarray) -> tuple[float, float, float, float]:
    """Return mean, its standard error, tau and I² of a random-effects model.

    The variance between sites is that of Paule and Mandel (1982), and the standard error that of Hartung, Knapp, Sidik and
    Jonkman, both from statsmodels.

    Args:
        effects: Score of each site on a scale on which it is about normal, (k,).
        variances: Variance of each, (k,).

    Raises:
        MissingExtra: The package statsmodels is not installed.
    """
    try:
        from statsmodels.stats.meta_analysis import combine_effects
    except ImportError:
        raise MissingExtra("a summary of sites", "analysis", "statsmodels") from None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = combine_effects(effects, variances, method_re="iterated", use_t=True)
    return (
        float(found.mean_effect_re),
        float(found.sd_eff_w_re_hksj),
        math.sqrt(max(float(found.tau2), 0.0)),
        max(float(found.i2), 0.0),
    )


def predict_next(effects: np.ndarray, variances: np.ndarray) -> tuple[float, float]:
    """Return the 95 % prediction interval for a further site (Nagashima, Noma and Furukawa, Stat. Methods Med. Res. 28, 2019).

    The variance between sites is drawn from its confidence distribution, because an interval with the estimated variance
    is too narrow if the estimate is 0. That distribution is here the one of the generalised Q statistic; the article uses
    that of Cochran's Q, which gives a narrower interval if one site is much larger than the others.

    Args:
        effects: Score of each site, (k,).
        variances: Variance of each, (k,).
    """
    count, rng = len(effects), np.random.default_rng(0)
    widest = 100 * (np.ptp(effects) ** 2 + variances.max())
    grid = np.concatenate([[0.0], np.geomspace(1e-6 * widest, widest, 400)])
    weights = 1 / (variances + grid[:, None])
    total = weights.sum(axis=1)
    means = weights @ effects / total
    spread = (weights * (effects - means[:, None]) ** 2).sum(axis=1)
    drawn = np.interp(rng.chisquare(count - 1, DRAWS), spread[::-1], grid[::-1])
    centre, error = (np.interp(drawn, grid, one) for one in (means, np.sqrt(spread / ((count - 1) * total))))
    following = centre + rng.standard_t(count - 1, DRAWS) * error + rng.standard_normal(DRAWS) * np.sqrt(drawn)
    low, high = np.quantile(following, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def summarize(values: np.ndarray, errors: np.ndarray, patients: np.ndarray, scale: str) -> Summary:
    """Combine the scores of sites.

    Args:
        values: Score of each site, (k,).
        errors: Standard error of each over patients, (k,).
        patients: Number of patients of each, (k,).
        scale: logit for shares, log for errors above 0, identity otherwise.

    Raises:
        BadData: There are fewer than two sites.
    """
    if len(values) < 2:
        raise BadData(f"{len(values)} site with a score and a standard error. A summary needs at least two sites.")
    effects, variances = on_scale(values, errors, patients, scale)
    mean, se, tau, i2 = combine(effects, variances)
    reach = scipy.stats.t.ppf((1 + LEVEL) / 2, len(values) - 1) * se
    ends = [mean - reach, mean + reach]
    ends += predict_next(effects, variances) if len(values) >= FEWEST else (math.nan, math.nan)
    value, low, high, next_low, next_high = (from_scale(one, scale) for one in (mean, *ends))
    return Summary(value, low, high, next_low, next_high, tau, i2, len(values), scale)


def on_scale(
    values: np.ndarray, errors: np.ndarray, patients: np.ndarray, scale: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return scores and their variances on another scale, by the delta method.

    Shares of 0 and 1 have no logit: half a patient is then added to both outcomes.
    """
    values, errors = np.asarray(values, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    if scale == "identity":
        return values, errors**2
    if scale == "log":
        return np.log(values), (errors / values) ** 2
    size = np.asarray(patients, dtype=np.float64)
    edge = (values <= 0) | (values >= 1) | ~(errors > 0)
    shares = np.where(edge, (np.clip(values, 0, 1) * size + 0.5) / (size + 1), values)
    variances = np.where(edge, 1 / (size * shares * (1 - shares)), (errors / (shares * (1 - shares))) ** 2)
    return np.log(shares / (1 - shares)), variances


def from_scale(value: float, scale: str) -> float:
    """Return a number on the scale of the score."""
    if scale == "identity":
        return value
    return math.exp(value) if scale == "log" else float(scipy.special.expit(value))
