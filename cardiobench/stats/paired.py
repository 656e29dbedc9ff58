"""Differences of two models that answered the same rows."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.intervals import placements
from cardiobench.stats.shares import on_scale, shares_of, slope_of
from cardiobench.stats.unequal import stretch_of_mean

MIN_PER_LABEL = 5
"""Patients with a label, and without it, that a comparison over several labels needs."""


class Difference(NamedTuple):
    """Difference of two scores: both ends of its 95 % and of its 90 % interval, standard error, and two-sided p of none."""

    low: float
    high: float
    inner_low: float
    inner_high: float
    se: float
    p_value: float


UNKNOWN = Difference(*[np.nan] * 6)


def students(difference: float, se: float, freedom: float, factor: float = 1.0) -> Difference:
    """Judge a difference by Student's t.

    Args:
        difference: Observed difference.
        se: Standard error over patients.
        freedom: Degrees of freedom.
        factor: Factor of both arms for unequal patients.
    """
    wide = factor * se
    outer, inner = (float(scipy.stats.t.ppf(level, freedom) * wide) for level in (0.975, 0.95))
    p = float(2 * scipy.stats.t.sf(abs(difference) / wide, freedom)) if wide > 0 else float(difference == 0)
    return Difference(difference - outer, difference + outer, difference - inner, difference + inner, se, p)


def comparable_labels(truth: np.ndarray, clusters: Clusters) -> npt.NDArray[np.bool_]:
    """Tell which labels of truth (n, K) five patients have and five have not, bool (K,)."""
    counts = np.array([[clusters.count_in(column == value) for value in (0, 1)] for column in truth.T])
    return np.asarray((counts >= MIN_PER_LABEL).all(axis=1))


Moves = Callable[[int, np.ndarray], tuple[float, np.ndarray]]
"""`(label, its m measured rows) -> (difference of the label, influence of the rows on it (m,))`."""


def moves_of_ranks(first: ScoringInput, second: ScoringInput) -> Moves:
    """Return the differences of AUROCs, whose influence on rows gives DeLong's variance."""

    def moves(code: int, known: np.ndarray) -> tuple[float, np.ndarray]:
        positive = first.y_true[known, code] == 1
        (one, shares), (other, others) = (placements(positive, each.scores[known, code]) for each in (first, second))
        sizes = np.where(positive, positive.sum(), (~positive).sum())
        return one - other, (shares - others - (one - other)) / sizes

    return moves


def moves_of_shares(first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray], scale: str) -> Moves:
    """Return the differences of shares of rows, given as hits and rows, bool (n, K) each, on a scale of `stats.shares`."""
    (one, of_one), (other, of_other) = (shares_of(*each) for each in (first, second))
    differences = on_scale(one, scale) - on_scale(other, scale)
    influence = of_one * slope_of(one, scale) - of_other * slope_of(other, scale)
    return lambda code, known: (float(differences[code]), influence[known, code])


def label_difference(
    first: ScoringInput, second: ScoringInput, clusters: Clusters, moves: Moves | None = None
) -> Difference:
    """Judge the difference of two means over several labels, of AUROCs or of shares such as F1.

    The variance is that of the influence of patients, of AUROCs DeLong's; the degrees of freedom are Satterthwaite's, to which each label adds one less than
    its positive patients: a label of five patients knows its own variance badly, a mean over many labels better.

    Source: DeLong et al., Biometrics 44 (1988); Obuchowski, Biometrics 53 (1997); Satterthwaite, Biometrics Bulletin 2 (1946).

    Args:
        first: Scores of one model, (n, K).
        second: Scores of the other for the same rows.
        clusters: Patients of the rows.
        moves: Differences of single labels; None for those of AUROCs.

    Returns:
        The difference over the labels of `comparable_labels`; NaN where there are none.
    """
    moves = moves or moves_of_ranks(first, second)
    total, differences = np.zeros(len(first)), []
    variances, freedoms = [], []
    for code in np.flatnonzero(comparable_labels(first.y_true, clusters)):
        truth = first.y_true[:, code]
        known = np.flatnonzero(~np.isnan(truth))
        positive = truth[known] == 1
        difference, moved = moves(int(code), known)
        differences.append(difference)
        for rows in (positive, ~positive):
            patients = clusters.count_in(known[rows])
            part = moved[rows] * np.sqrt(patients / max(patients - 1, 1))
            total[known[rows]] += part
            if rows is positive:
                variances.append((np.bincount(clusters.of_row[known[rows]], part) ** 2).sum())
                freedoms.append(max(patients - 1, 1))
    if not differences:
        return UNKNOWN
    count, of_positives = len(differences), np.array(variances)
    variance = (clusters.sum(total) ** 2).sum()
    rest = max(variance - of_positives.sum(), 0.0)
    spread = (of_positives**2 / freedoms).sum() + rest**2 / (clusters.count - 1)
    freedom = (of_positives.sum() + rest) ** 2 / spread if spread > 0 else clusters.count - 1
    factor = stretch_of_mean(total, clusters)
    return students(float(np.mean(differences)), float(np.sqrt(variance)) / count, float(freedom), factor)
