"""Intervals over patients that keep their coverage for few patients. Functions take arrays and round nothing."""

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from cardiobench.stats.bootstrap import LEVEL
from cardiobench.stats.clusters import Clusters

PRIOR = 1.0
EXTREME = 0.9
"""Share above which the upper end of Wilson's interval is exact; below 1 minus this share, the lower end."""
_CHUNK = 2**22  # Random numbers in memory at a time: 32 MB.

Scale = Literal["identity", "log", "log_complement", "fisher_z"]


class Interval(NamedTuple):
    """Ends of an interval, and the standard error on the scale of the score."""

    low: float
    high: float
    se: float


NONE = Interval(np.nan, np.nan, np.nan)


def confusion_table(
    truth: np.ndarray, answer: np.ndarray, classes: int, outcomes: int | None = None
) -> npt.NDArray[np.float64]:
    """Count the rows by true class and answer, (K, outcomes); by default there are as many answers as classes."""
    width = outcomes or classes
    return np.bincount(truth * width + answer, minlength=classes * width).reshape(classes, width).astype(np.float64)


def made_up_answers(truth: np.ndarray, classes: int, outcomes: int | None = None) -> npt.NDArray[np.float64]:
    """Return the answers of a made-up patient of each class, (K, outcomes): half right, the rest by class frequency.

    With two classes, both answers have equal weight. With more classes, equal weights would give a rare class more
    wrong answers than it has patients. No answer is outside the classes.
    """
    rows = np.bincount(truth, minlength=classes).astype(np.float64)
    others = np.where(np.eye(classes, dtype=bool), 0, rows)
    total = others.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, others / np.where(total > 0, total, 1), (1 - np.eye(classes)) / max(classes - 1, 1))
    return np.pad((np.eye(classes) + shares) / 2, ((0, 0), (0, (outcomes or classes) - classes)))


def smoothed_tables(
    truth: np.ndarray, answer: np.ndarray, clusters: Clusters, classes: int, draws: int, seed: int = 0
) -> npt.NDArray[np.float64]:
    """Draw confusion tables by a patient-weighted bootstrap with one made-up patient per class.

    Each patient gets an exponential weight (Rubin, Annals of Statistics 9, 1981), so the class mix varies with the
    patients. Within each class present, one made-up patient answers as in `made_up_answers`, without changing the mix.
    With one row per patient and two classes, sensitivity and specificity get Jeffreys' Beta(x + 1/2, n - x + 1/2).

    Args:
        truth: Class codes, (n,).
        answer: Class codes, (n,).
        clusters: Patients of the rows.
        classes: Number of classes, K.
        draws: Number of draws, B.
        seed: Seed of the draws.

    Returns:
        Confusion tables, (B, K, K) float64.
    """
    return smoothed_cells(truth, answer, clusters, made_up_answers(truth, classes), draws, seed)[0]


def smoothed_cells(
    truth: np.ndarray, outcome: np.ndarray, clusters: Clusters, made_up: np.ndarray, draws: int, seed: int = 0
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Draw tables of true class by outcome, such as the pair of answers of two models; see `smoothed_tables`.

    Args:
        truth: Class codes, (n,).
        outcome: Codes from 0 to M - 1, (n,).
        clusters: Patients of the rows.
        made_up: Share of each outcome for a made-up patient of each class, (K, M).
        draws: Number of draws, B.
        seed: Seed of the draws.

    Returns:
        The tables with and without the made-up patients, (B, K, M) each.
    """
    rng = np.random.default_rng(seed)
    classes, outcomes = made_up.shape
    codes = truth * outcomes + outcome
    rows = np.bincount(truth, minlength=classes).astype(np.float64)
    patients = np.array([clusters.count_in(truth == label) for label in range(classes)])
    plain = _weighted_counts(codes, clusters, made_up.size, draws, rng).reshape(draws, classes, outcomes)
    shape = np.where(rows > 0, PRIOR, 0)[:, None] * made_up
    drawn = plain + rng.standard_gamma(shape, (draws, classes, outcomes)) * (rows / np.maximum(patients, 1))[:, None]
    total = drawn.sum(axis=2)
    drawn *= (plain.sum(axis=2) / np.where(total > 0, total, 1))[..., None]
    return drawn, plain


def _weighted_counts(
    codes: np.ndarray, clusters: Clusters, size: int, draws: int, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Count the rows of each code with an exponential weight per patient. Returns an array (B, size).

    Patients with the same counts share one draw, because a sum of m exponentials is a gamma of shape m.
    """
    if clusters.one_row_each:
        return rng.standard_gamma(np.bincount(codes, minlength=size), (draws, size))
    cells = clusters.cells(codes, size)
    key = cells @ np.random.default_rng(0).integers(1, 2**62, size)  # Equal counts give equal keys (modulo 2**64).
    _, first, shared = np.unique(key, return_index=True, return_counts=True)
    patterns = cells[first].astype(np.float64)
    step = max(1, _CHUNK // len(first))
    shapes = [(min(step, draws - start), len(first)) for start in range(0, draws, step)]
    alone = shared.max() == 1  # An exponential is a gamma of shape 1 and faster to draw.
    weights = (rng.standard_exponential(shape) if alone else rng.standard_gamma(shared, shape) for shape in shapes)
    return np.concatenate([weight @ patterns for weight in weights])


def quantile_interval(values: np.ndarray, score: float, level: float = LEVEL) -> Interval:
    """Compute quantiles of the draws, extended to include the score itself: a perfect score has the upper end 1."""
    defined = values[~np.isnan(values)]
    if not len(defined):
        return NONE
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(min(low, score)), float(max(high, score)), float(defined.std()))


def standard_error(influence: np.ndarray, clusters: Clusters) -> float:
    """Compute the standard error of a score from its rows' influence, summed by patient (infinitesimal jackknife).

    Args:
        influence: Derivative of the score with respect to the weight of each row, (n,).
        clusters: Patients of the rows.
    """
    if clusters.count < 2:
        return np.nan
    return float(np.sqrt((clusters.sum(influence) ** 2).sum() * clusters.count / (clusters.count - 1)))


def t_interval(score: float, se: float, patients: int, scale: Scale = "identity", level: float = LEVEL) -> Interval:
    """Compute Student's interval with P - 1 degrees of freedom, on a scale on which it is symmetric.

    Use `log` for positive scores, `log_complement` for 1 minus a positive score, and `fisher_z` for correlations.
    """
    t = scipy.stats.t.ppf([(1 - level) / 2, (1 + level) / 2], patients - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        if scale == "log":
            low, high = score * np.exp(t * se / score) if score > 0 else (0.0, 0.0)
        elif scale == "log_complement":
            high, low = 1 - (1 - score) * np.exp(t * se / (1 - score)) if score < 1 else (1.0, 1.0)
        elif scale == "fisher_z":
            low, high = np.tanh(np.arctanh(score) + t * se / (1 - score**2)) if abs(score) < 1 else (score, score)
        else:
            low, high = score + t * se
    return Interval(float(low), float(high), float(se))


def wilson_ends(share: float, size: float, level: float = LEVEL) -> tuple[float, float]:
    """Compute Wilson's interval of a share.

    Above .9 the upper end, and below .1 the lower end, is the exact one of Clopper and Pearson if it is farther away:
    after a single error Wilson's interval would leave out shares that are common.

    Args:
        share: Share in [0, 1].
        size: Number of patients, or their effective number.
        level: Confidence level of the interval.
    """
    z = scipy.stats.norm.ppf((1 + level) / 2)
    centre, reach = share + z**2 / (2 * size), z * np.sqrt(share * (1 - share) / size + z**2 / (4 * size**2))
    low, high = (centre + np.array([-reach, reach])) / (1 + z**2 / size)
    if EXTREME < share < 1:
        high = max(high, exact_ends(share, size, level)[1])
    elif 0 < share < 1 - EXTREME:
        low = min(low, exact_ends(share, size, level)[0])
    return float(max(low, 0)), float(min(high, 1))


def exact_ends(share: float, size: float, level: float = LEVEL) -> tuple[float, float]:
    """Compute the exact interval of a share (Clopper and Pearson 1934).

    For whole numbers these are the ends of `scipy.stats.binomtest(k, n).proportion_ci(level, "exact")`; an effective
    number of patients need not be whole (Korn and Graubard, Survey Methodology 24, 1998).

    Args:
        share: Share in [0, 1].
        size: Number of patients, or their effective number.
        level: Confidence level of the interval.
    """
    hits, tail = share * size, (1 - level) / 2
    low = scipy.stats.beta.ppf(tail, hits, size - hits + 1) if share > 0 else 0.0
    high = scipy.stats.beta.isf(tail, hits + 1, size - hits) if share < 1 else 1.0
    return float(low), float(high)


def mean_interval(
    values: np.ndarray, lows: np.ndarray, highs: np.ndarray, influence: np.ndarray, patients: int
) -> Interval:
    """Compute the interval of the mean of several scores from the interval of each and their correlations over patients.

    Source: Zou and Donner, Statistics in Medicine 27 (2008), for correlated estimates. Scores without variation between
    patients, such as perfect scores, and scores with a negative correlation, which few patients show by chance, count
    as uncorrelated.

    Args:
        values: The scores, (K,).
        lows: Lower ends of their intervals, (K,).
        highs: Upper ends, (K,).
        influence: Derivative of each score with respect to the weight of each patient, (P, K); 0 for patients outside
            the score.
        patients: Number of patients in the test set, P.
    """
    size = np.linalg.norm(influence, axis=0)
    units = influence / np.where(size > 0, size, 1)
    correlation = np.maximum(units.T @ units, 0)
    np.fill_diagonal(correlation, 1)
    mean = values.mean()
    below, above = (
        np.sqrt(max(reach @ correlation @ reach, 0)) / len(values) for reach in (values - lows, highs - values)
    )
    se = np.linalg.norm(influence.mean(axis=1)) * np.sqrt(patients / max(patients - 1, 1))
    return Interval(float(mean - below), float(mean + above), float(se))


def ratio_interval(
    first: tuple[float, float, float], second: tuple[float, float, float], correlation: float = 0.0
) -> tuple[float, float]:
    """Compute the interval of the ratio of two scores above 0 from the interval of each.

    Source: Donner and Zou, Statistical Methods in Medical Research 21 (2012), MOVER-R.

    Args:
        first: Numerator with its lower and upper end.
        second: Denominator with its lower and upper end, not all 0.
        correlation: Correlation of both scores.
    """
    (one, low_one, high_one), (other, low_other, high_other) = first, second

    def end(of_one: float, of_other: float, sign: int) -> float:
        product = one * other - correlation * (one - of_one) * (of_other - other)
        below = of_other * (2 * other - of_other)
        root = np.sqrt(max(product**2 - of_one * (2 * one - of_one) * below, 0.0))
        return float((product + sign * root) / below) if below > 0 else np.inf

    if other <= 0:
        return 0.0, np.inf
    # A denominator with an upper end above twice its value could be any larger number.
    low = end(low_one, high_other, -1) if high_other < 2 * other else low_one / high_other
    return max(low, 0.0), end(high_one, low_other, 1)


def placements(positive: np.ndarray, scores: np.ndarray) -> tuple[float, npt.NDArray[np.float64]]:
    """Compute the AUROC, and for each row the share of the other class against which it is ranked correctly.

    Returns an array (n,).
    """
    high, low = np.sort(scores[positive]), np.sort(scores[~positive])
    share = np.empty(len(scores))
    for rows, others, sign in ((positive, low, 1), (~positive, high, -1)):
        below = np.searchsorted(others, scores[rows], "left") + np.searchsorted(others, scores[rows], "right")
        share[rows] = below / (2 * len(others)) if sign > 0 else 1 - below / (2 * len(others))
    return float(share[positive].mean()), share


def auroc_variance(positive: np.ndarray, share: np.ndarray, clusters: Clusters) -> float:
    """Compute the variance of an AUROC over patients (Obuchowski 1997); with one row per patient, DeLong's (1988)."""
    theta = share[positive].mean()
    sums, own = [], 0.0
    for rows in (positive, ~positive):
        sums.append(clusters.sum((share - theta) * rows) / rows.sum())
        patients = clusters.count_in(rows)
        own += patients / max(patients - 1, 1) * (sums[-1] ** 2).sum()
    return float(own + 2 * clusters.count / max(clusters.count - 1, 1) * (sums[0] * sums[1]).sum())


def auroc_interval(positive: np.ndarray, scores: np.ndarray, clusters: Clusters, level: float = LEVEL) -> Interval:
    """Compute Newcombe's interval of an AUROC (Statistics in Medicine 25, 2006, method 5) with the patients' design effect.

    Args:
        positive: Whether each row is positive, bool (n,); both classes are present.
        scores: Scores, (n,).
        clusters: Patients of the rows; class sizes are divided by Obuchowski's variance over DeLong's.
        level: Confidence level of the interval.
    """
    theta, share = placements(positive, scores)
    rows = Clusters(np.arange(len(scores)), len(scores))
    plain = auroc_variance(positive, share, rows)
    variance = plain if clusters.one_row_each else auroc_variance(positive, share, clusters)
    sizes = np.array([positive.sum(), (~positive).sum()], dtype=np.float64)
    if not clusters.one_row_each:
        patients = np.array([clusters.count_in(positive), clusters.count_in(~positive)])
        sizes = np.maximum(sizes / max(1.0, variance / plain), 1.5) if plain > 0 else np.minimum(patients, sizes)
    half, z, product = sizes.mean() - 1, scipy.stats.norm.ppf((1 + level) / 2), sizes.prod()

    def excess(t: float) -> float:
        spread = t * (1 - t) * (1 + half * (1 - t) / (2 - t) + half * t / (1 + t))
        return (theta - t) ** 2 * product - z**2 * spread

    edge = min(max(theta, 1e-9), 1 - 1e-9)  # 0 and 1 are also roots, but not ends of the interval.
    inside = excess(edge) < 0
    low = scipy.optimize.brentq(excess, 1e-12, edge) if inside and excess(1e-12) > 0 else 0.0
    high = scipy.optimize.brentq(excess, edge, 1 - 1e-12) if inside and excess(1 - 1e-12) > 0 else 1.0
    return Interval(float(low), float(high), float(np.sqrt(max(variance, 0))))
