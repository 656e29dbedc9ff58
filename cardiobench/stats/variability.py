"""Intervals that also cover the variation between training sets or seeds."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import scipy

from cardiobench.results.score_result import Estimate
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.intervals import LEVEL

REFITS = 20
TEST, BOTH = "test patients", "test and training patients"
SEEDS = "test patients and seeds of the training"


def training_weights(patient_ids: Sequence[object], refits: int = REFITS, seed: int = 0) -> Iterator[npt.NDArray]:
    """Yield bootstrap weights of the training patients, one set per refit.

    Args:
        patient_ids: Patient of each training row, (n,).
        refits: Number of refits.
        seed: Seed of the draws; use the same for two compared models.

    Yields:
        Weight of each row, (n,) float64: the number of times its patient was drawn.
    """
    clusters, rng = Clusters.of(np.asarray(patient_ids)), np.random.default_rng(seed)
    for _ in range(refits):
        drawn = rng.multinomial(clusters.count, np.full(clusters.count, 1 / clusters.count))
        yield drawn.astype(np.float64)[clusters.of_row]


def training_spread(scores: Sequence[float]) -> float:
    """Compute the standard deviation of the scores of refits.

    Their mean is biased, because each refit sees only 63 % of the patients.
    """
    return float(np.std(np.asarray(scores, dtype=np.float64), ddof=1))


def paired_refit_spread(scores_a: Sequence[float], scores_b: Sequence[float]) -> float:
    """Compute the standard deviation of the difference of two models over refits on the same draws.

    Args:
        scores_a: Score of each refit of one model, (R,).
        scores_b: Score of each refit of the other, with the same draws in the same order, (R,).

    Returns:
        The standard deviation over the refits whose scores are defined; NaN for fewer than two.

    Raises:
        ValueError: The numbers of refits differ.
    """
    if len(scores_a) != len(scores_b):
        raise ValueError(f"{len(scores_a)} and {len(scores_b)} refits; paired refits need the same draws")
    differences = np.asarray(scores_a, dtype=np.float64) - np.asarray(scores_b, dtype=np.float64)
    known = differences[~np.isnan(differences)]
    return training_spread(known.tolist()) if len(known) > 1 else float("nan")


def mean_over_tasks(scores: Sequence[Sequence[float]]) -> npt.NDArray[np.float64]:
    """Average the scores of each refit over tasks. Returns an array (R,).

    Refit r of every task is averaged first, because tasks of one dataset share the draws of their training patients.

    Args:
        scores: Scores of the refits of each task, (T, R).

    Raises:
        ValueError: The numbers of refits differ between tasks.
    """
    counts = sorted({len(one) for one in scores})
    if len(counts) != 1:
        raise ValueError(f"tasks with {counts} refits; the mean over tasks needs the same number")
    return np.asarray(scores, dtype=np.float64).mean(axis=0)


def joint_resamples(
    scores: Sequence[np.ndarray], draws: Sequence[np.ndarray], shares: Sequence[float], seed: int
) -> np.ndarray:
    """Return mean scores over draws in joint resamples of test and training patients. The shape is (B, J).

    Test variation is the score in a bootstrap resample of test patients, averaged over draws. Training variation adds
    the deviation of each draw from the mean, with normal weights shared by all sizes and learners of one seed. The
    weights correct the variance for draws without replacement from the same patients, which differ too little by the
    factor 1 - share and whose common part does not average out. The full set has a single draw, so it uses the
    deviations of the largest subset scaled by its share, because the variance of a fitted model decreases as 1 / n
    (`benchmarks/validity/labels_saved.py`).

    Args:
        scores: Score of each draw, (K,), for each of J sizes; (1,) for the full set.
        draws: Scores of the draws in every test resample, (K, B).
        shares: Fraction of the patients at each size, ascending.
        seed: Random seed of the weights.
    """
    count, resamples = max(map(len, scores)), draws[0].shape[1]
    weights = np.random.default_rng(seed).normal(size=(resamples, count)) / np.sqrt(max(count - 1, 1))
    columns, largest = [], np.zeros(count)
    for score, drawn, share in zip(scores, draws, shares, strict=True):
        if share < 1:
            deviations = (score - score.mean()) / np.sqrt(1 - share)
            moved = deviations * np.sqrt(share + (1 - share) / count)
            largest = deviations * share
        else:
            moved = largest
        columns.append(drawn.mean(axis=0) + weights @ moved)
    return np.stack(columns, axis=1)


def widen(estimate: Estimate, spread: float, level: float = LEVEL, covers: str = BOTH) -> Estimate:
    """Widen an interval over test patients by the spread over training sets or seeds.

    The new distance of each end from the score is the root of the sum of squares of its old distance and 1.96 times the
    spread.
    """
    reach = scipy.stats.norm.ppf((1 + level) / 2) * spread
    low = estimate.value - np.hypot(estimate.value - estimate.low, reach)
    high = estimate.value + np.hypot(estimate.high - estimate.value, reach)
    return replace(estimate, low=float(low), high=float(high), se=float(np.hypot(estimate.se, spread)), covers=covers)
