"""Bootstrap over patients. Resamples are rows of a weight matrix, so statistics are matrix products."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from cardiobench.core.config import RESAMPLES
from cardiobench.results.score_result import Estimate
from cardiobench.stats.clusters import Clusters

LEVEL = 0.95
MIN_PATIENTS = 10
"""Minimum number of patients for an interval."""
NO_WIDTH = "the score does not vary between patients: an interval of zero width says nothing"
FEW = f"fewer than {MIN_PATIENTS} patients: no interval"
_CHUNK = 256 * 1024  # Weights per chunk: 2 MB of float64, which fit in the second-level cache.

Statistic = Callable[[np.ndarray], Mapping[str, np.ndarray]]


def patient_weights(
    patient_ids: Sequence[object] | np.ndarray, resamples: int = RESAMPLES, seed: int = 0
) -> Iterator[np.ndarray]:
    """Draw bootstrap resamples of the patients.

    Args:
        patient_ids: Patient of each row, (n,).
        resamples: Number of resamples, B.
        seed: Seed of the generator; the draws do not depend on the chunk size.

    Yields:
        Weights (b, n) float64: how often each row's patient was drawn. The chunk sizes b add up to `resamples`.
    """
    patients, patient_of_row = np.unique(np.asarray(patient_ids).astype(str), return_inverse=True)
    one_row_each = np.array_equal(patient_of_row, np.arange(len(patients)))
    for times in _draws(len(patients), resamples, seed, max(1, _CHUNK // max(1, len(patient_of_row)))):
        yield times if one_row_each else times.take(patient_of_row, axis=1, mode="clip")


def _draws(count: int, resamples: int, seed: int, step: int) -> Iterator[np.ndarray]:
    """Yield how often each of `count` patients was drawn, (b, count) float64, `step` resamples at a time."""
    rng = np.random.default_rng(seed)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = rng.integers(0, count, size=(size, count))
        drawn += count * np.arange(size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count).astype(np.float64)


def resampled_counts(
    codes: np.ndarray, patient_ids: Sequence[object] | np.ndarray, resamples: int = RESAMPLES, seed: int = 0
) -> np.ndarray:
    """Count the rows of each code in every resample of `patient_weights`.

    Args:
        codes: Code of each row, from 0, for each of m columns, shape (n, m).
        patient_ids: Patient of each row, (n,).
        resamples: Number of resamples, B.
        seed: Seed of the draws.

    Returns:
        Counts, (B, m, number of codes) float64.
    """
    patients, patient_of_row = np.unique(np.asarray(patient_ids).astype(str), return_inverse=True)
    clusters, size = Clusters(patient_of_row, len(patients)), int(codes.max()) + 1
    counts = np.concatenate([clusters.cells(column, size) for column in codes.T], axis=1).astype(np.float64)
    # Each chunk reads all counts once, so more counts allow longer chunks.
    draws = _draws(len(patients), resamples, seed, max(1, _CHUNK // len(patients), min(counts.shape[1], resamples)))
    return np.concatenate([times @ counts for times in draws]).reshape(resamples, codes.shape[1], size)


def resample(
    statistic: Statistic, patient_ids: Sequence[object] | np.ndarray, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, np.ndarray]:
    """Compute a statistic for every resample of the patients.

    Args:
        statistic: Function of weights (b, n) that returns {key: (b,)}. Values to be compared within a resample must
            come from the same call.
        patient_ids: Patient of each row, (n,).
        resamples: Number of resamples, B.
        seed: Seed of the draws.

    Returns:
        Values in the resamples, {key: (B,)}.
    """
    chunks = [statistic(weights) for weights in patient_weights(patient_ids, resamples, seed)]
    return {key: np.concatenate([chunk[key] for chunk in chunks]) for key in chunks[0]}


def percentile_interval(values: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Compute the percentile interval of the finite values; (NaN, NaN) if there are none."""
    defined = values[~np.isnan(values)]
    if not len(defined):
        return np.nan, np.nan
    tail = (1 - level) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return float(low), float(high)


def estimate(value: float, values: np.ndarray, patient_ids: Sequence[object] | np.ndarray) -> Estimate:
    """Return a score with its percentile interval, or with the reason why there is none.

    Args:
        value: Score of the sample itself.
        values: Score in every resample, (B,).
        patient_ids: Patient of each row, (n,).
    """
    n, patients = len(patient_ids), len(set(patient_ids))
    if np.isnan(value):
        return Estimate(np.nan, np.nan, np.nan, n, patients, "undefined for these rows")
    if patients < MIN_PATIENTS:
        return Estimate(float(value), np.nan, np.nan, n, patients, FEW)
    undefined = int(np.isnan(values).sum())
    low, high = percentile_interval(values)
    reason = f"undefined in {undefined} of {len(values)} resamples, which the interval excludes" if undefined else ""
    if not reason and low == high:
        reason = NO_WIDTH
    return Estimate(float(value), low, high, n, patients, reason, method="percentile")
