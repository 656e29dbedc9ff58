"""Unequal patients: both arms of an interval are stretched where a few patients have most of the rows."""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import scipy

from cardiobench.stats.clusters import Clusters
from cardiobench.stats.intervals import LEVEL, Interval

_CHUNK = 2**21  # Table cells held at once: 16 MB.
_STEP = 1e-6  # Fraction of a patient's rows used for numerical derivatives.


def stretch(clusters: Clusters, plain: float, left_out: float) -> float:
    """Compute the factor by which the arms of an interval grow; 1 where all patients have equally many rows.

    Args:
        clusters: Patients of the rows.
        plain: Standard error from the derivatives by the patients' weights.
        left_out: Standard error from leaving out one patient at a time, which sees how much the largest ones decide.
    """
    if clusters.equal:
        return 1.0
    of_few, of_all = scipy.stats.t.ppf((1 + LEVEL) / 2, [max(clusters.effective - 1, 1), clusters.count - 1])
    return float(max(1.0, left_out / plain if plain > 0 else 1.0) * of_few / of_all)


def stretched(interval: Interval, score: float, factor: float) -> Interval:
    """Multiply both arms of the interval of a score by a factor."""
    return interval._replace(low=score - factor * (score - interval.low), high=score + factor * (interval.high - score))


def stretch_of_mean(influence: np.ndarray, clusters: Clusters) -> float:
    """Compute the factor of a score whose influence on rows, (n,), is that of a mean, such as an error.

    Without a patient who has a share w of the rows a mean moves by the patient's influence times 1 / (1 - w).
    """
    if clusters.equal:
        return 1.0
    of_patient = clusters.sum(influence)
    return _of_moves(of_patient, of_patient / (1 - clusters.rows / len(clusters)), clusters)


def stretch_of_tables(
    codes: np.ndarray, cells: int, clusters: Clusters, scores: Callable[[np.ndarray], Mapping[str, np.ndarray]]
) -> dict[str, float]:
    """Compute the factors of scores that are functions of counted rows.

    Args:
        codes: Cell of each row, 0 to `cells` - 1, (n,).
        cells: Number of cells.
        clusters: Patients of the rows.
        scores: Counts (b, cells) -> {key: (b,)}.

    Returns:
        {key: factor}; empty where all patients have equally many rows.
    """
    if clusters.equal:
        return {}
    counts, size = clusters.cells(codes, cells), max(1, _CHUNK // cells)
    total = counts.sum(axis=0).astype(np.float64)
    whole = {key: float(values[0]) for key, values in scores(total[None]).items()}
    parts = [counts[start : start + size].astype(np.float64) for start in range(0, len(counts), size)]
    near, far = ([scores(total - step * part) for part in parts] for step in (_STEP, 1))
    found = {}
    for key, value in whole.items():
        slope, moved = (np.nan_to_num(np.concatenate([one[key] for one in several]) - value) for several in (near, far))
        found[key] = _of_moves(slope / _STEP, moved, clusters)
    return found


def stretch_of_weights(
    scores: Callable[[np.ndarray], np.ndarray], whole: float, plain: float, clusters: Clusters
) -> float:
    """Compute the factor of any score by weights of its rows; where that would take too long, by the patients' sizes alone.

    Args:
        scores: Weights (b, n) -> (b,).
        whole: Score of all rows.
        plain: Standard error of the score.
        clusters: Patients of the rows.
    """
    if clusters.equal or clusters.count * len(clusters) > _CHUNK:
        return stretch(clusters, 0.0, 0.0)
    without = scores((clusters.of_row[None] != np.arange(clusters.count)[:, None]).astype(np.float64))
    return stretch(clusters, plain, _left_out(np.nan_to_num(without - whole)))


def stretch_of_ranking(positive: np.ndarray, influence: np.ndarray, clusters: Clusters) -> float:
    """Compute the factor of an AUROC from the influence of rows, (n,): each class loses its patient's share of its own rows."""
    if clusters.equal:
        return 1.0
    moved = np.zeros(clusters.count)
    for rows in (positive, ~positive):
        share = np.bincount(clusters.of_row[rows], minlength=clusters.count) / rows.sum()
        moved += clusters.sum(influence * rows) / np.where(share < 1, 1 - share, 1)
    return _of_moves(clusters.sum(influence), moved, clusters)


def _of_moves(slope: npt.NDArray[np.float64], moved: npt.NDArray[np.float64], clusters: Clusters) -> float:
    plain = np.sqrt((slope**2).sum() * clusters.count / (clusters.count - 1))
    return stretch(clusters, float(plain), _left_out(moved))


def _left_out(moved: np.ndarray) -> float:
    """Compute the standard error from the changes of the score without each patient, shape (P,)."""
    return float(np.sqrt(((moved - moved.mean()) ** 2).sum() * (len(moved) - 1) / len(moved)))
