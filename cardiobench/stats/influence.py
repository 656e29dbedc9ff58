"""Influence of each patient on a score, used for covariances between the scores of models."""

from collections.abc import Callable
from itertools import chain

import numpy as np
import numpy.typing as npt

from cardiobench.metrics.load import load_formula
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.paired import comparable_labels

_STEP = 1e-6
_CHUNK = 2**22  # Weights in memory at a time: 32 MB.
_PARTS = 500
"""Number of blocks of patients that are left out together if leaving out each patient would take too long."""


def patient_influence(
    metric: Metric, key: str, sample: ScoringInput, clusters: Clusters, present: np.ndarray
) -> npt.NDArray[np.float64]:
    """Compute the derivative of a score with respect to the weight of each patient. Returns an array (P,).

    Scores of confusion tables use numerical derivatives, means over labels the derivatives of their classes, and other
    scores the change without each patient.

    Args:
        metric: Metric of the score.
        key: Key of the number.
        sample: Rows.
        clusters: Patients of the rows.
        present: Classes that occur, bool (K,); empty if the answers are not classes.
    """
    if metric.of_counts(key) and metric.from_tables is not None and len(present):
        return clusters.sum(row_influence(metric.from_tables, key, sample, present))
    if metric.numbers[key].method == "class_mean" and metric.per_class is not None:
        return _of_labels(*metric.per_class(**metric.inputs(sample)), clusters)
    if metric.influence is not None:
        return clusters.sum(metric.influence(**metric.inputs(sample))[key])
    return _left_out(metric, key, sample, clusters)


def patient_changes(
    metric: Metric, key: str, sample: ScoringInput, clusters: Clusters, present: np.ndarray
) -> npt.NDArray[np.float64]:
    """Compute the change of a score without each patient, (P,), which shows the impact of patients with many rows.

    It is exact for scores of confusion tables and for means over rows. Arguments as in `patient_influence`.
    """
    if metric.of_counts(key) and metric.from_tables is not None and len(present):
        size = len(present)
        cells = clusters.cells(sample.y_true * size + sample.y_pred, size**2)
        total, step = cells.sum(axis=0), max(1, _CHUNK // size**2)
        tables = chain([total], (total - cells[start : start + step] for start in range(0, len(cells), step)))
        values = [metric.from_tables(one.reshape(-1, size, size).astype(np.float64), present)[key] for one in tables]
        return np.asarray(np.nan_to_num(np.concatenate(values[1:]) - values[0][0]))
    if metric.numbers[key].method == "class_mean" and metric.per_class is not None:
        return -_of_labels(*metric.per_class(**metric.inputs(sample)), clusters, left_out=True)
    if metric.influence is not None:
        of_patient = clusters.sum(metric.influence(**metric.inputs(sample))[key])
        return np.asarray(-of_patient / np.maximum(1 - clusters.rows / len(clusters), 1 / len(clusters)))
    return -_left_out(metric, key, sample, clusters)


def row_influence(
    from_tables: Callable[..., dict[str, np.ndarray]], key: str, sample: ScoringInput, present: np.ndarray
) -> npt.NDArray[np.float64]:
    """Compute the derivative of a function of the confusion table with respect to the weight of each row.

    Returns an array (n,).

    Args:
        from_tables: Formula of a metric, `Metric.from_tables`.
        key: Key of the number.
        sample: Rows.
        present: Classes that occur, bool (K,).
    """
    size, width = len(present), sample.outcomes(len(present))
    cell, cells = sample.y_true * width + sample.y_pred, size * width
    counts = np.bincount(cell, minlength=cells).astype(np.float64)
    tables = (counts + _STEP * np.vstack([np.zeros(cells), np.eye(cells)])).reshape(-1, size, width)
    values = from_tables(tables, present)[key]
    return np.asarray(np.nan_to_num((values[1:] - values[0]) / _STEP)[cell])


def _of_labels(
    truth: np.ndarray, scores: np.ndarray, clusters: Clusters, *, left_out: bool = False
) -> npt.NDArray[np.float64]:
    """Compute the influence of each patient on the mean AUROC of the comparable labels.

    Returns float64 (patients,), for AUROC from 0 to 1.

    Args:
        truth: Labels 0, 1, and NaN if unknown, (n, K).
        scores: Scores of the positive class, (n, K).
        clusters: Patients of the n rows.
        left_out: Whether to divide by the share of each class that belongs to other patients.
    """
    total, chosen = np.zeros(len(truth)), np.flatnonzero(comparable_labels(truth, clusters))
    for code in chosen:
        known = np.flatnonzero(~np.isnan(truth[:, code]))
        positive = truth[known, code] == 1
        area, _ = load_formula("classification_report").area_influence(scores[known, code], positive)
        for rows in (positive, ~positive) if left_out else ():
            of_row = clusters.of_row[known[rows]]
            share = np.bincount(of_row, minlength=clusters.count) / len(of_row)
            area[rows] /= np.where(share < 1, 1 - share, 1)[of_row]
        total[known] += area / len(chosen)
    return clusters.sum(total)


def _left_out(metric: Metric, key: str, sample: ScoringInput, clusters: Clusters) -> npt.NDArray[np.float64]:
    """Compute the change of a score without each patient.

    For many patients, without blocks, scaled by the square root.
    """
    count = clusters.count
    parts = np.arange(count) if count * len(sample) <= _PARTS * _CHUNK // 100 else np.arange(count) % _PARTS
    of_row, step = parts[clusters.of_row], max(1, _CHUNK // len(sample))
    whole, lost = metric.value(sample)[key], np.zeros(parts.max() + 1)
    for start in range(0, len(lost), step):
        codes = np.arange(start, min(start + step, len(lost)))
        weights = (of_row[None] != codes[:, None]).astype(np.float64)
        lost[codes] = whole - metric.resamples(sample, weights)[key]
    return np.nan_to_num(lost)[parts] / np.sqrt(np.bincount(parts))[parts]
