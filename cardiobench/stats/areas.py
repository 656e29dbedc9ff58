"""Intervals of shares and of areas under curves, for patients with different numbers of rows."""

from collections.abc import Callable

import numpy as np
import scipy

from cardiobench.metrics.load import load_formula
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.intervals import (
    LEVEL,
    Interval,
    auroc_interval,
    exact_ends,
    mean_interval,
    placements,
    standard_error,
    wilson_ends,
)
from cardiobench.stats.unequal import stretch_of_mean, stretch_of_ranking, stretched

ENOUGH_POSITIVES = 50
"""Minimum number of patients with a finding for an interval of its average precision, which is biased upwards below."""
FEW_POSITIVES = f"no interval: biased upwards, because fewer than {ENOUGH_POSITIVES} patients have the finding"


def share_of_rows(
    share: float,
    influence: np.ndarray,
    rows: np.ndarray,
    clusters: Clusters,
    ends: Callable[[float, float], tuple[float, float]] = exact_ends,
) -> Interval:
    """Compute the interval of a share over some rows by their effective number.

    Args:
        share: Share of the rows in [0, 1].
        influence: Derivative of the share with respect to the weight of each row, (n,); 0 outside the rows.
        rows: Rows in the denominator, bool (n,).
        clusters: Patients of all rows.
        ends: Function of the share and the number of rows. The default is the exact interval (Clopper and Pearson); use
            `wilson_ends` for shares that are combined, because exact intervals of several shares add up to a wide one.
    """
    taken = clusters.take(rows)
    size = effective_rows(share, influence[rows], taken) if taken.count > 1 else 1.0
    low, high = ends(share, size) if taken.count else (0.0, 1.0)
    return Interval(low, high, standard_error(influence, clusters))


def effective_rows(share: float, influence: np.ndarray, clusters: Clusters) -> float:
    """Return the number of independent rows that determine a share as well as the rows of two or more patients do.

    It is the number of rows divided by the design effect of the patients and multiplied by the squared ratio of
    Student's quantiles for rows and for patients (Korn and Graubard 1998), with the factor for unequal patients.
    A few errors do not show how much the rows of a patient agree. The design effect is therefore the mean over the
    patients with the rarer answer and one made-up patient, whose rows agree completely. A share of 0 or 1 thus counts
    (sum n)² / sum n² patients for n rows per patient; with one row per patient, the number is that of the rows.

    Args:
        share: Share of the rows in [0, 1].
        influence: Derivative of the share with respect to the weight of each row, (n,).
        clusters: Patients of the rows.
    """
    rows, rarer = len(clusters), min(clusters.count_in(influence > 0), clusters.count_in(influence < 0))
    seen = rows * (clusters.sum(influence) ** 2).sum() / (share * (1 - share)) if rarer else 0.0
    effect = max(1.0, (rarer * seen + rows / clusters.effective) / (rarer + 1))
    of_rows, of_patients = scipy.stats.t.ppf((1 + LEVEL) / 2, [rows - 1, clusters.count - 1])
    return float(rows / effect * (of_rows / of_patients / stretch_of_mean(influence, clusters)) ** 2)


def average_precision_interval(
    value: float, influence: np.ndarray, positive: np.ndarray, clusters: Clusters
) -> Interval | str:
    """Compute Wilson's interval of the average precision of one class, or return the reason why there is none."""
    if clusters.count_in(positive) < ENOUGH_POSITIVES:
        return FEW_POSITIVES
    se = standard_error(influence, clusters)
    plain = se * np.sqrt(1 - 1 / clusters.count)  # One row per patient then gives Wilson's formula.
    patients = clusters.count_in(positive)
    size = min(patients, value * (1 - value) / plain**2) if plain > 0 else patients
    wide = stretched(Interval(*wilson_ends(value, size), se), value, stretch_of_mean(influence, clusters))
    return wide._replace(low=max(wide.low, 0.0), high=min(wide.high, 1.0))


def stretched_auroc(positive: np.ndarray, scores: np.ndarray, clusters: Clusters) -> Interval:
    """Compute Newcombe's interval of an AUROC, widened for unequal patients."""
    interval = auroc_interval(positive, scores, clusters)
    if clusters.equal:
        return interval
    value, share = placements(positive, scores)
    influence = (share - value) / np.where(positive, positive.sum(), (~positive).sum())
    wide = stretched(interval, value, stretch_of_ranking(positive, influence, clusters))
    return wide._replace(low=max(wide.low, 0.0), high=min(wide.high, 1.0))


def mean_auroc_interval(truth: np.ndarray, scores: np.ndarray, clusters: Clusters) -> Interval:
    """Compute the interval of a mean AUROC from those of the classes.

    Args:
        truth: True classes, 1, 0 or NaN for unmeasured, (n, K).
        scores: Scores of the classes, (n, K).
        clusters: Patients of the rows.
    """
    values = np.array(load_formula("auroc_macro").compute(truth, scores, average=None)["auroc"])
    ranked = np.flatnonzero(~np.isnan(values))
    influence = np.zeros((clusters.count, len(ranked)))
    ends = []
    for column, code in enumerate(ranked):
        known = np.flatnonzero(~np.isnan(truth[:, code]))
        positive = truth[known, code] == 1
        of_rows, _ = load_formula("classification_report").area_influence(scores[known, code], positive)
        influence[:, column] = np.bincount(clusters.of_row[known], of_rows, clusters.count)
        ends.append(stretched_auroc(positive, scores[known, code], clusters.take(known)))
    lows, highs = (np.array([getattr(one, end) for one in ends]) for end in ("low", "high"))
    return mean_interval(values[ranked], lows, highs, influence, clusters.count)
