"""Widening of intervals if a few patients have most of the rows."""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import scipy

from cardiobench.stats.clusters import Clusters
from cardiobench.stats.intervals import LEVEL, Interval

_CHUNK = 2**21  # Table cells in memory at a time: 16 MB.
_STEP = 1e-6  # Fraction of a patient's rows used for numerical derivatives.


def stretch(clusters: Clusters, plain: float, left_out: float, rows: np.ndarray | None = None) -> float:
    """Compute the widening factor of an interval; 1 if all patients have the same number of rows.

    Args:
        clusters: Patients of the rows.
        plain: Standard error from derivatives with respect to the patients' weights.
        left_out: Standard error from leaving out one patient at a time, which reflects the impact of the largest
            patients.
        rows: Rows that enter the score, bool (n,), whose effective number of patients counts; None for all rows.
    """
    if clusters.equal:
        return 1.0
    effective = clusters.effective if rows is None else clusters.effective_in(rows)
    of_few, of_all = scipy.stats.t.ppf((1 + LEVEL) / 2, [max(effective - 1, 1), clusters.count - 1])
    return float(max(1.0, left_out / plain if plain > 0 else 1.0) * of_few / of_all)


def stretched(interval: Interval, score: float, factor: float) -> Interval:
    """Multiply the distance of both ends of an interval from the score by a factor."""
    return interval._replace(low=score - factor * (score - interval.low), high=score + factor * (interval.high - score))


def stretch_of_mean(influence: np.ndarray, clusters: Clusters) -> float:
    """Compute the widening factor of a mean, such as an error, from the influence (n,) of the rows.

    Leaving out a patient with a share w of the rows moves a mean by the patient's influence times 1 / (1 - w).
    """
    if clusters.equal:
        return 1.0
    of_patient = clusters.sum(influence)
    return stretch_of_changes(of_patient, of_patient / (1 - clusters.rows / len(clusters)), clusters)


def stretch_of_tables(
    codes: np.ndarray, cells: int, clusters: Clusters, scores: Callable[[np.ndarray], Mapping[str, np.ndarray]]
) -> dict[str, float]:
    """Compute the widening factors of scores that are functions of row counts.

    The effective number of patients is that of the rows that enter a score, such as the positive ones of a sensitivity.

    Args:
        codes: Cell of each row, 0 to `cells` - 1, (n,).
        cells: Number of cells.
        clusters: Patients of the rows.
        scores: Function of counts (b, cells) that returns {key: (b,)}.

    Returns:
        {key: factor}; empty if all patients have the same number of rows.
    """
    if clusters.equal:
        return {}
    counts, size = clusters.cells(codes, cells), max(1, _CHUNK // cells)
    total = counts.sum(axis=0).astype(np.float64)
    whole = {key: float(values[0]) for key, values in scores(total[None]).items()}
    parts = [counts[start : start + size].astype(np.float64) for start in range(0, len(counts), size)]
    near, far = ([scores(total - step * part) for part in parts] for step in (_STEP, 1))
    filled = np.flatnonzero(total)
    one_row = np.zeros((len(filled), cells))
    one_row[np.arange(len(filled)), filled] = 1
    fewer = scores(total - _STEP * one_row)
    found = {}
    for key, value in whole.items():
        slope, moved = (np.nan_to_num(np.concatenate([one[key] for one in several]) - value) for several in (near, far))
        entering = np.abs(np.nan_to_num(fewer[key] - value)) > _STEP**2
        # A perfect score depends on no row. The rows that enter it are those on which it depends after errors.
        if not entering.any():
            smoothed = scores(np.vstack([total, total - _STEP * one_row]) + 1)[key]
            entering = np.abs(np.nan_to_num(smoothed[1:] - smoothed[0])) > _STEP**2
        # The difference of two models with the same answers depends on no row either, and counts all of them.
        rows = np.isin(codes, filled[entering]) if entering.any() else None
        found[key] = stretch_of_changes(slope / _STEP, moved, clusters, rows)
    return found


def stretch_of_weights(
    scores: Callable[[np.ndarray], np.ndarray], whole: float, plain: float, clusters: Clusters
) -> float:
    """Compute the widening factor of any score from row weights, or only from row counts if that would take too long.

    Args:
        scores: Function of weights (b, n) that returns scores (b,).
        whole: Score of all rows.
        plain: Standard error of the score.
        clusters: Patients of the rows.
    """
    if clusters.equal or clusters.count * len(clusters) > _CHUNK:
        return stretch(clusters, 0.0, 0.0)
    without = scores((clusters.of_row[None] != np.arange(clusters.count)[:, None]).astype(np.float64))
    return stretch(clusters, plain, _left_out(np.nan_to_num(without - whole)))


def stretch_of_ranking(positive: np.ndarray, influence: np.ndarray, clusters: Clusters) -> float:
    """Compute the widening factor of an AUROC from the influence of the rows, (n,), for each class separately."""
    if clusters.equal:
        return 1.0
    moved = np.zeros(clusters.count)
    for rows in (positive, ~positive):
        share = np.bincount(clusters.of_row[rows], minlength=clusters.count) / rows.sum()
        moved += clusters.sum(influence * rows) / np.where(share < 1, 1 - share, 1)
    return stretch_of_changes(clusters.sum(influence), moved, clusters)


def stretch_of_changes(
    slope: npt.NDArray[np.float64], moved: npt.NDArray[np.float64], clusters: Clusters, rows: np.ndarray | None = None
) -> float:
    """Compute the widening factor of any score.

    Args:
        slope: Derivative of the score with respect to the weight of each patient, (P,).
        moved: Change of the score without each patient, (P,).
        clusters: Patients of the rows.
        rows: Rows that enter the score, bool (n,); None for all rows.
    """
    if clusters.equal:
        return 1.0
    plain = np.sqrt((slope**2).sum() * clusters.count / (clusters.count - 1))
    return stretch(clusters, float(plain), _left_out(moved), rows)


def _left_out(moved: np.ndarray) -> float:
    """Compute the standard error from the changes (P,) of the score without each patient."""
    return float(np.sqrt(((moved - moved.mean()) ** 2).sum() * (len(moved) - 1) / len(moved)))
