"""Intervals of shares and of areas under curves, for patients with different numbers of rows."""

import numpy as np

from cardiobench.metrics.load import load_formula
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.intervals import (
    Interval,
    auroc_interval,
    mean_interval,
    placements,
    standard_error,
    wilson_interval,
)
from cardiobench.stats.unequal import stretch_of_mean, stretch_of_ranking, stretched

ENOUGH_POSITIVES = 50
"""Minimum number of patients with a finding for an interval of its average precision, which is biased upwards below."""
FEW_POSITIVES = f"no interval: biased upwards, because fewer than {ENOUGH_POSITIVES} patients have the finding"


def share_interval(share: float, se: float, rows: np.ndarray, clusters: Clusters) -> Interval:
    """Compute Wilson's interval of a share over the rows that a bool array (n,) selects."""
    plain = se * np.sqrt(1 - 1 / clusters.count)  # One row per patient then gives Wilson's formula.
    return wilson_interval(share, plain, clusters.count_in(rows))._replace(se=se)


def share_of_rows(share: float, influence: np.ndarray, rows: np.ndarray, clusters: Clusters) -> Interval:
    """Compute Wilson's interval of a share over some rows, widened for the unequal patients of these rows.

    Args:
        share: Share of the rows in [0, 1].
        influence: Derivative of the share with respect to the weight of each row, (n,); 0 outside the rows.
        rows: Rows in the denominator, bool (n,).
        clusters: Patients of all rows.
    """
    taken, own = clusters.take(rows), influence[rows]
    if taken.count < 2:
        known = wilson_interval(share, 0.0, 1) if taken.count else Interval(0.0, 1.0, 0.0)
        return known._replace(se=standard_error(influence, clusters))
    plain = standard_error(own, taken) * np.sqrt(1 - 1 / taken.count)
    wide = stretched(wilson_interval(share, plain, taken.count), share, stretch_of_mean(own, taken))
    return Interval(max(wide.low, 0.0), min(wide.high, 1.0), standard_error(influence, clusters))


def average_precision_interval(
    value: float, influence: np.ndarray, positive: np.ndarray, clusters: Clusters
) -> Interval | str:
    """Compute Wilson's interval of the average precision of one class, or return the reason why there is none."""
    if clusters.count_in(positive) < ENOUGH_POSITIVES:
        return FEW_POSITIVES
    interval = share_interval(value, standard_error(influence, clusters), positive, clusters)
    wide = stretched(interval, value, stretch_of_mean(influence, clusters))
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
