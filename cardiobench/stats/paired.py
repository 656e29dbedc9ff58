"""Differences between two models that answered the same rows."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.intervals import placements, standard_error
from cardiobench.stats.shares import on_scale, shares_of, slope_of
from cardiobench.stats.unequal import stretch_of_changes, stretch_of_mean

MIN_PER_LABEL = 5
"""Minimum number of patients with, and without, a label for comparing it."""

TAIL = 10
"""Number of draws on one side of zero below which the p-value of a bootstrap uses the normal distribution."""


class Difference(NamedTuple):
    """Difference of two scores: its 95 % and 90 % intervals, standard error and two-sided p-value."""

    low: float
    high: float
    inner_low: float
    inner_high: float
    se: float
    p_value: float


UNKNOWN = Difference(*[np.nan] * 6)


def students(difference: float, se: float, freedom: float, factor: float = 1.0) -> Difference:
    """Compute intervals and p-value of a difference by Student's t.

    Args:
        difference: Observed difference.
        se: Standard error over patients.
        freedom: Degrees of freedom.
        factor: Widening factor of the intervals for unequal patients.
    """
    wide = factor * se
    outer, inner = (float(scipy.stats.t.ppf(level, freedom) * wide) for level in (0.975, 0.95))
    p = float(2 * scipy.stats.t.sf(abs(difference) / wide, freedom)) if wide > 0 else float(difference == 0)
    return Difference(difference - outer, difference + outer, difference - inner, difference + inner, se, p)


def percentiles(observed: float, drawn: np.ndarray, factor: float) -> Difference:
    """Compute intervals and p-value of a difference from draws, (B,), whose deviations are scaled by a factor.

    Fewer than `TAIL` draws on one side of zero give a p-value that depends on their number, so that a correction for many
    pairs would need very many draws. The normal tail is used there if it is smaller.
    """
    defined = drawn[~np.isnan(drawn)]
    if not len(defined):
        return UNKNOWN
    if factor != 1:
        defined = observed + factor * (defined - observed)
    low, inner_low, inner_high, high = map(float, np.quantile(defined, [0.025, 0.05, 0.95, 0.975]))
    se, p = float(defined.std()), two_sided(defined)
    if se > 0 and p < 2 * TAIL / (len(defined) + 1):
        p = min(p, float(2 * scipy.stats.norm.sf(abs(observed) / se)))
    return Difference(low, high, inner_low, inner_high, se, p)


def outward_percentiles(drawn: np.ndarray) -> tuple[float, float]:
    """Compute a 95 % interval from draws, (B,), that may be infinite, such as ratios.

    Each end is the next draw outwards, because infinite draws cannot be interpolated. NaN draws do not count.
    """
    defined = drawn[~np.isnan(drawn)]
    if not len(defined):
        return np.nan, np.nan
    return float(np.quantile(defined, 0.025, method="lower")), float(np.quantile(defined, 0.975, method="higher"))


def with_refits(found: Difference, difference: float, spread: float, refits: int, patients: int) -> Difference:
    """Add the variation between training sets or seeds to a difference over test patients.

    Each end of an interval moves by the root of the sum of squares. The arm over test patients gives a standard error at
    the level of its interval, to which the spread is added; the new arm is a quantile of Student's t with the degrees of
    freedom of Satterthwaite's formula, because the spread of 20 refits is itself estimated.

    Args:
        found: Difference over test patients.
        difference: Observed difference.
        spread: Standard deviation of the difference over refits (`variability.paired_refit_spread`).
        refits: Number of refits.
        patients: Number of test patients.
    """
    if not spread > 0 or np.isnan(found.p_value):
        return found

    def arm(end: float, level: float) -> float:
        se = abs(end - difference) / scipy.stats.norm.ppf(level)
        return float(scipy.stats.t.ppf(level, freedom(se)) * np.hypot(se, spread))

    def freedom(se: float) -> float:
        parts = np.array([spread, se]) ** 2
        return float(parts.sum() ** 2 / (parts**2 / [refits - 1, max(patients - 1, 1)]).sum())

    low, high = difference - arm(found.low, 0.975), difference + arm(found.high, 0.975)
    inner = difference - arm(found.inner_low, 0.95), difference + arm(found.inner_high, 0.95)
    towards = (found.low if difference > 0 else found.high) - difference
    se = abs(towards) / scipy.stats.norm.ppf(0.975)
    p = float(2 * scipy.stats.t.sf(abs(difference) / np.hypot(se, spread), freedom(se)))
    return Difference(low, high, *inner, float(np.hypot(found.se, spread)), max(found.p_value, p))


def two_sided(differences: Sequence[float] | np.ndarray) -> float:
    """Compute the two-sided p-value of no difference: twice the smaller share of draws on either side of zero.

    Zeros count on both sides. One is added to each count, so the p-value is never 0.
    """
    values = np.asarray(differences, dtype=np.float64)
    defined = values[~np.isnan(values)]
    if not len(defined):
        return np.nan
    smaller = min((defined <= 0).sum(), (defined >= 0).sum())
    return float(min(1.0, 2 * (smaller + 1) / (len(defined) + 1)))


class MeanDifferences(NamedTuple):
    """Differences of the mean scores of M models over tasks, row minus column; all arrays are (M, M).

    Attributes:
        difference: Difference over the tasks that both models answered; NaN if there are none.
        se: Standard error of the difference.
        freedom: Degrees of freedom of Student's t; NaN for too few patients, in which case there is no p-value.
        answers_only: Whether a model was trained and its refits are not known, so that training patients do not count.
    """

    difference: npt.NDArray[np.float64]
    se: npt.NDArray[np.float64]
    freedom: npt.NDArray[np.float64]
    answers_only: npt.NDArray[np.bool_]

    def p_values(self) -> npt.NDArray[np.float64]:
        """Return two-sided p-values of no difference. The shape is (M, M); NaN if unknown."""
        with np.errstate(divide="ignore", invalid="ignore"):
            certain = np.where(self.difference == 0, 0.0, np.inf)
            t = np.where(self.se > 0, np.abs(self.difference) / self.se, certain)
        unknown = np.isnan(self.difference) | np.isnan(self.se) | np.isnan(self.freedom)
        p = 2 * scipy.stats.t.sf(np.where(unknown, np.nan, t), np.maximum(self.freedom, 1))
        return np.asarray(np.minimum(p, 1))


def unpaired_differences(
    scores: np.ndarray, errors: np.ndarray, patients: np.ndarray, datasets: Sequence[str]
) -> MeanDifferences:
    """Compute differences of means over tasks from scores and standard errors, as if the patients of two models differed.

    Scores of one model on tasks of one dataset share patients. Their correlation is unknown and counts as 1, so the
    standard errors of a dataset add up. Datasets are independent. The degrees of freedom are Satterthwaite's.

    Args:
        scores: Scores, (M, T); NaN if a model lacks a task.
        errors: Standard errors, (M, T).
        patients: Numbers of patients, (M, T).
        datasets: Dataset of each task, (T,).
    """
    there = ~(np.isnan(scores) | np.isnan(errors))
    both = there.astype(np.float64) @ there.T.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(there, scores, 0.0) @ there.T / both
        variance, spread = np.zeros_like(both), np.zeros_like(both)
        for dataset in dict.fromkeys(datasets):
            of_dataset = [number for number, one in enumerate(datasets) if one == dataset]
            mask = there[:, of_dataset]
            own = (np.where(mask, errors[:, of_dataset], 0.0) @ mask.T / both) ** 2
            freedom = np.maximum(np.where(mask, patients[:, of_dataset], np.inf).min(axis=1) - 1, 1)[:, None]
            variance += own + own.T
            spread += own**2 / freedom + (own**2 / freedom).T
        freedoms = np.where(spread > 0, variance**2 / spread, np.where(both > 0, 1.0, np.nan))
        difference, se = mean - mean.T, np.sqrt(variance)
    return MeanDifferences(difference, se, freedoms, np.zeros(both.shape, dtype=bool))


def mean_difference(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Combine independent parts of the variance of a difference.

    Args:
        parts: Variance and degrees of freedom of each part, such as the patients of each dataset and the refits.

    Returns:
        Standard error, and Satterthwaite's degrees of freedom.
    """
    variances, freedoms = np.array(parts, dtype=np.float64).T
    total, spread = variances.sum(), (variances**2 / freedoms).sum()
    return float(np.sqrt(total)), float(total**2 / spread) if spread > 0 else float(freedoms.sum())


def variance_over_patients(moved: np.ndarray, without: np.ndarray, rows: np.ndarray) -> float:
    """Compute the variance of a difference of means over the tasks of one dataset, widened for unequal patients.

    Args:
        moved: Derivative of the difference with respect to the weight of each patient, (P,).
        without: Change of the difference without each patient, (P,).
        rows: Number of rows of each patient in all tasks, (P,).
    """
    count = len(moved)
    factor = stretch_of_changes(moved, without, Clusters(np.repeat(np.arange(count), rows), count))
    return float(factor**2 * (moved**2).sum() * count / max(count - 1, 1))


def comparable_labels(truth: np.ndarray, clusters: Clusters) -> npt.NDArray[np.bool_]:
    """Return which labels of truth (n, K) at least five patients have and five lack. The array is bool (K,)."""
    counts = np.array([[clusters.count_in(column == value) for value in (0, 1)] for column in truth.T])
    return np.asarray((counts >= MIN_PER_LABEL).all(axis=1))


Moves = Callable[[int, np.ndarray], tuple[float, np.ndarray]]
"""Function `(label, its m measured rows) -> (difference, influence of the rows (m,))`."""


def moves_of_ranks(first: ScoringInput, second: ScoringInput) -> Moves:
    """Return the function for differences of AUROCs; the influence of the rows gives DeLong's variance."""

    def moves(code: int, known: np.ndarray) -> tuple[float, np.ndarray]:
        positive = first.y_true[known, code] == 1
        (one, shares), (other, others) = (placements(positive, each.scores[known, code]) for each in (first, second))
        sizes = np.where(positive, positive.sum(), (~positive).sum())
        return one - other, (shares - others - (one - other)) / sizes

    return moves


def moves_of_shares(first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray], scale: str) -> Moves:
    """Return the function that compares two shares per label on a scale of `stats.shares`.

    Each share is a pair (hits, rows) of bool (n, K): rows in the numerator and in the denominator of each label.
    """
    (one, of_one), (other, of_other) = (shares_of(*each) for each in (first, second))
    differences = on_scale(one, scale) - on_scale(other, scale)
    influence = of_one * slope_of(one, scale) - of_other * slope_of(other, scale)
    return lambda code, known: (float(differences[code]), influence[known, code])


def label_difference(
    first: ScoringInput, second: ScoringInput, clusters: Clusters, moves: Moves | None = None
) -> Difference:
    """Compute intervals and p-value of the difference of two means over labels, of AUROCs or of shares such as F1.

    The variance is that of the patients' influence, for AUROCs DeLong's. The degrees of freedom are Satterthwaite's,
    with one less than the number of positive patients for each label, because the variance of a label with few patients
    is estimated poorly.

    Source: DeLong et al., Biometrics 44 (1988); Obuchowski, Biometrics 53 (1997); Satterthwaite, Biometrics Bulletin 2 (1946).

    Args:
        first: Scores of one model, (n, K).
        second: Scores of the other for the same rows.
        clusters: Patients of the rows.
        moves: Function for the difference of a single label; None means AUROCs.

    Returns:
        The difference over the labels of `comparable_labels`; NaN if there are none.
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
    variance = (clusters.sum(total) ** 2).sum()
    freedom = satterthwaite(variances, freedoms, variance, clusters)
    factor = stretch_of_mean(total, clusters)
    return students(float(np.mean(differences)), float(np.sqrt(variance)) / len(differences), freedom, factor)


def satterthwaite(parts: Sequence[float], freedoms: Sequence[int], variance: float, clusters: Clusters) -> float:
    """Compute the degrees of freedom of a variance from those of its parts; the remainder has those of all patients.

    Args:
        parts: Parts of the variance.
        freedoms: Degrees of freedom of each part.
        variance: Total variance.
        clusters: Patients of the rows.
    """
    known, every = np.array(parts), clusters.count - 1
    rest = max(variance - known.sum(), 0.0)
    spread = (known**2 / freedoms).sum() + rest**2 / every
    return float((known.sum() + rest) ** 2 / spread) if spread > 0 else float(every)


def difference_of_classes(
    difference: float, influence: np.ndarray, truth: np.ndarray, clusters: Clusters
) -> Difference:
    """Compute intervals and p-value of the difference of two confusion-table scores by Welch's t over the classes.

    Each class has one degree of freedom less than its patients. For balanced accuracy, this is Welch's test (Biometrika
    34, 1947) of the differences per class.

    Args:
        difference: Observed difference.
        influence: Influence of each row on the difference, (n,).
        truth: Class codes, (n,).
        clusters: Patients of the rows.
    """
    variance, parts, freedoms = standard_error(influence, clusters) ** 2, [], []
    for code in np.unique(truth):
        rows = truth == code
        freedoms.append(max(clusters.count_in(rows) - 1, 1))
        own = (clusters.sum(np.where(rows, influence - influence[rows].mean(), 0.0)) ** 2).sum()
        parts.append(float(own * (1 + 1 / freedoms[-1])))
        variance += own * (1 / freedoms[-1] - 1 / (clusters.count - 1))
    freedom = satterthwaite(parts, freedoms, variance, clusters)
    return students(difference, float(np.sqrt(variance)), freedom, stretch_of_mean(influence, clusters))


def wider(one: Difference, other: Difference) -> Difference:
    """Return the smallest intervals that contain those of both, with the larger standard error and p-value."""
    return Difference(
        min(one.low, other.low),
        max(one.high, other.high),
        min(one.inner_low, other.inner_low),
        max(one.inner_high, other.inner_high),
        max(one.se, other.se),
        max(one.p_value, other.p_value),
    )
