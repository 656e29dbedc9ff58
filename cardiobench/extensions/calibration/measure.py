"""Measure calibration and net benefit with intervals over patients. Functions take arrays and round nothing."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy

from cardiobench.extensions.calibration.glm import covariance, fit_logistic, log_odds, quantile
from cardiobench.metrics.load import load_formula, load_metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.estimate import Estimate
from cardiobench.stats.areas import share_of_rows
from cardiobench.stats.bootstrap import MIN_PATIENTS
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler, estimate_metric
from cardiobench.stats.intervals import Interval, wilson_ends

MIN_OF_EACH = 20
"""Minimum effective number of patients with the class, and without it, for intervals of slope, intercept and reliability."""
FEW_OF_EACH = f"no interval: fewer than {MIN_OF_EACH} patients (effective number) with the class, or without it"
UNDEFINED = "undefined: one class is missing, all probabilities are equal, or they separate the classes"
KNOTS = 3
"""Degrees of freedom of the natural spline of the reliability curve, including the constant."""
POINTS = 41
"""Number of points of the reliability curve."""
NUMBERS = ("calibration_slope", "calibration_intercept", "brier")


def calibration(truth: np.ndarray, probability: np.ndarray, clusters: Clusters) -> dict[str, Estimate]:
    """Return calibration slope, intercept and Brier score with intervals over patients.

    The values are those of the metrics `calibration_report` and `classification_report`. Intervals of slope and intercept
    are Student's, with the covariance of `glm.covariance`.

    Args:
        truth: Whether each row has the class, bool (n,).
        probability: Probability of the class, (n,).
        clusters: Patients of the rows.
    """
    codes, table = truth.astype(np.int64), np.stack([1 - probability, probability], axis=1)
    called = (probability >= 0.5).astype(np.int64)
    values = load_formula("calibration_report").compute(codes, table)
    odds, ones = log_odds(probability), np.ones((len(truth), 1))
    found = {
        "calibration_slope": _coefficient(
            values["calibration_slope"], np.column_stack([ones, odds]), truth, clusters, None
        ),
        "calibration_intercept": _coefficient(values["calibration_intercept"], ones, truth, clusters, odds),
    }
    sampler = Sampler(ScoringInput(codes, called, table), clusters, np.ones(2, dtype=bool))
    return found | estimate_metric(load_metric("classification_report"), sampler, ["brier"])


def _coefficient(
    value: float, columns: np.ndarray, truth: np.ndarray, clusters: Clusters, offset: np.ndarray | None
) -> Estimate:
    """Return the last coefficient of a logistic regression, which has this value, with its interval."""
    counts = len(truth), clusters.count
    if math.isnan(value):
        return Estimate(math.nan, math.nan, math.nan, *counts, UNDEFINED)
    fitted = fit_logistic(columns, truth, offset)
    if fitted is None or not enough(truth, clusters):
        return Estimate(value, math.nan, math.nan, *counts, FEW_OF_EACH)
    spread = covariance(fitted, columns, truth, clusters)
    if spread is None:
        return Estimate(value, math.nan, math.nan, *counts, "no interval: one patient alone determines it")
    se = math.sqrt(spread[-1, -1])
    reach = quantile(clusters) * se
    return Estimate(value, value - reach, value + reach, *counts, se=se, method="t")


def enough(truth: np.ndarray, clusters: Clusters) -> bool:
    """Return whether enough patients have the class, and lack it, for intervals that keep their coverage."""
    return min(clusters.effective_in(truth), clusters.effective_in(~truth)) >= MIN_OF_EACH


def reliability_band(truth: np.ndarray, probability: np.ndarray, clusters: Clusters) -> pd.DataFrame | str:
    """Return a smooth reliability curve with a pointwise 95 % band, or the reason why there is none.

    The curve is a logistic regression of the truth on a natural cubic spline of the log odds; the band is Student's on
    the logit scale, with a covariance over patients. It covers the middle 95 % of the probabilities, because it would
    extrapolate beyond.

    Args:
        truth: Whether each row has the class, bool (n,).
        probability: Probability of the class, (n,).
        clusters: Patients of the rows.

    Returns:
        The columns probability, share, low and high.
    """
    if not enough(truth, clusters):
        return f"no curve: fewer than {MIN_OF_EACH} patients (effective number) with the class, or without it"
    odds = log_odds(probability)
    if (values := np.unique(odds).size) < KNOTS + 1:
        return f"no curve: number of different probabilities {values}, and a curve needs {KNOTS + 1}"
    low, high = np.quantile(odds, [0.025, 0.975])
    at = np.linspace(low, high, POINTS)
    columns, of_points = _spline(odds, at)
    found = fit_logistic(columns, truth)
    if found is None:
        return "no curve: the probabilities separate the classes, or most of them are equal"
    centre = of_points @ np.asarray(found.params)
    spread = covariance(found, columns, truth, clusters)
    if spread is None:
        return "no curve: one patient alone determines it"
    reach = quantile(clusters) * np.sqrt(np.einsum("ij,jk,ik->i", of_points, spread, of_points))
    curve = {"share": centre, "low": centre - reach, "high": centre + reach}
    return pd.DataFrame({
        "probability": scipy.special.expit(at),
        **{name: scipy.special.expit(values) for name, values in curve.items()},
    })  # fmt: skip


def _spline(odds: np.ndarray, at: np.ndarray) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the natural cubic spline basis of log odds and of other points. The shapes are (n, KNOTS) and (m, KNOTS)."""
    import patsy

    design = patsy.dmatrix(f"cr(odds, df={KNOTS}) - 1", {"odds": odds}, NA_action="raise")
    (points,) = patsy.build_design_matrices([design.design_info], {"odds": at}, NA_action="raise")
    return np.asarray(design), np.asarray(points)


def decision_band(
    truth: np.ndarray, probability: np.ndarray, clusters: Clusters, thresholds: Sequence[float] | np.ndarray
) -> pd.DataFrame:
    """Return the net benefit at each threshold, and its gain over treating everybody, with 95 % intervals over patients.

    Net benefit is the share of true positives minus the share of false positives times the odds of the threshold
    (Vickers and Elkin, Med. Decis. Making 26, 2006); treating nobody has 0. Its gain over treating everybody is the share
    of true negatives times the odds minus the share of false negatives. Intervals combine those of both shares (Zou and
    Donner, Statistics in Medicine 27, 2008). There are none for fewer than 10 patients.

    Args:
        truth: Whether each row has the class, bool (n,).
        probability: Probability of the class, (n,).
        clusters: Patients of the rows.
        thresholds: Smallest probability at which a patient is treated, above 0 and below 1, (m,).

    Returns:
        The columns threshold, net_benefit, low, high, treat_all, gain, gain_low, gain_high and treated (share of rows).
    """
    rows = []
    for threshold in np.asarray(thresholds, dtype=np.float64):
        called, odds = probability >= threshold, threshold / (1 - threshold)
        benefit = _weighted_difference(called & truth, called & ~truth, 1.0, odds, clusters)
        gain = _weighted_difference(~called & ~truth, ~called & truth, odds, 1.0, clusters)
        treat_all = float(truth.mean() - (1 - truth.mean()) * odds)
        rows.append((threshold, *benefit, treat_all, *gain, called.mean()))
    columns = ["threshold", "net_benefit", "low", "high", "treat_all", "gain", "gain_low", "gain_high", "treated"]
    return pd.DataFrame(rows, columns=columns)


def _weighted_difference(
    good: np.ndarray, bad: np.ndarray, of_good: float, of_bad: float, clusters: Clusters
) -> tuple[float, float, float]:
    """Return `of_good` times a share of all rows minus `of_bad` times another one, with its interval."""
    shares, moved, every = [], [], np.ones(len(good), dtype=bool)
    for hits in (good, bad):
        share = float(hits.mean())
        influence = (hits - share) / len(hits)
        if clusters.count < MIN_PATIENTS:
            shares.append((share, Interval(np.nan, np.nan, np.nan)))
        else:
            shares.append((share, share_of_rows(share, influence, every, clusters, wilson_ends)))
        moved.append(influence)
    (one, of_one), (other, of_other) = shares
    value = of_good * one - of_bad * other
    together = _correlation(moved[0], moved[1], clusters)
    below = _reach(of_good * (one - of_one.low), of_bad * (of_other.high - other), together)
    above = _reach(of_good * (of_one.high - one), of_bad * (other - of_other.low), together)
    return value, value - below, value + above


def _reach(one: float, other: float, correlation: float) -> float:
    return math.sqrt(max(one**2 + other**2 - 2 * correlation * one * other, 0.0))


def _correlation(one: np.ndarray, other: np.ndarray, clusters: Clusters) -> float:
    """Return the correlation over patients of two scores from the influences (n,) of their rows."""
    first, second = clusters.sum(one), clusters.sum(other)
    size = np.linalg.norm(first) * np.linalg.norm(second)
    return float(first @ second / size) if size > 0 else 0.0
