"""Compute the points of ROC, precision-recall, reliability and decision curves, whose areas and sums equal the scores."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.metrics import precision_recall_curve, roc_curve

Points = tuple[np.ndarray, np.ndarray]
"""x and y of the points of a polyline. Each has the shape (m,)."""
NO_POINTS: Points = (np.empty(0), np.empty(0))
MAX_STEPS = 100  # Number of steps above which a curve is simplified; its area is preserved.
BINS = 15  # Number of equal bins (low, high] of the probability, as for the calibration error.
THRESHOLDS = np.linspace(0.01, 0.99, 99)  # Thresholds of a decision curve.


def one_against_rest(frame: pd.DataFrame, classes: Sequence[str]) -> tuple[npt.NDArray[np.bool_], np.ndarray]:
    """Return which rows have a class and its probability, (n, K) each: class 1 of two, else the classes that occur.

    Args:
        frame: Predictions with the columns y_true and p_<class>.
        classes: Class names in task order.
    """
    rated = [classes[1]] if len(classes) == 2 else [label for label in classes if (frame["y_true"] == label).any()]
    truth = np.stack([(frame["y_true"] == label).to_numpy() for label in rated], axis=1)
    return truth, frame[[f"p_{label}" for label in rated]].to_numpy(np.float64)


def roc(truth: npt.NDArray[np.bool_], scores: np.ndarray) -> Points:
    """Return 1 - specificity and sensitivity; their trapezoidal area is the mean AUROC of the classes.

    Several classes are averaged vertically, at each value of 1 - specificity.

    Args:
        truth: Whether each row has each class, (n, K).
        scores: Score of each class, (n, K).
    """
    curves = [_simplified(*roc_curve(*pair)[:2]) for pair in _two_sided(truth, scores)]
    if len(curves) < 2:
        return curves[0] if curves else NO_POINTS
    x = np.unique(np.concatenate([false for false, _ in curves]))
    ends = [np.mean([_limit(*curve, x, side) for curve in curves], axis=0) for side in ("left", "right")]
    return _simplified(np.repeat(x, 2), np.stack(ends, axis=1).ravel())


def precision_recall(truth: npt.NDArray[np.bool_], scores: np.ndarray) -> Points:
    """Return recall and precision as a step curve whose area is the mean average precision of the classes.

    A straight line between two thresholds would interpolate precision linearly, which is too optimistic (Davis and
    Goadrich, ICML 2006). Several classes are averaged vertically, at each recall.

    Args:
        truth: Whether each row has each class, (n, K).
        scores: Score of each class, (n, K).
    """
    steps = [_steps(*pair) for pair in _two_sided(truth, scores)]
    if not steps:
        return NO_POINTS
    edges = np.unique(np.concatenate([ends for ends, _ in steps]))
    heights = np.mean([precision[np.searchsorted(ends, edges)] for ends, precision in steps], axis=0)
    if len(edges) > MAX_STEPS:
        area = np.concatenate([[0.0], np.cumsum(heights * np.diff(edges, prepend=0.0))])
        kept = np.unique(np.searchsorted(edges, np.linspace(0, 1, MAX_STEPS + 1)[1:]))
        edges, area = edges[kept], area[kept + 1]
        heights = np.diff(area, prepend=0.0) / np.diff(edges, prepend=0.0)
    return np.repeat(np.concatenate([[0.0], edges]), 2)[1:-1], np.repeat(heights, 2)


def _two_sided(truth: npt.NDArray[np.bool_], scores: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return truth and score of each class that some rows have and others lack."""
    return [(truth[:, k], scores[:, k]) for k in range(truth.shape[1]) if 0 < truth[:, k].sum() < len(truth)]


def _steps(positive: np.ndarray, score: np.ndarray) -> Points:
    """Return the upper end in recall of each step, ascending, and its precision."""
    precision, recall, _ = precision_recall_curve(positive, score)
    ends, first = np.unique(recall[-2::-1], return_index=True)  # Without the point (0, 1), which no threshold gives.
    return ends[ends > 0], precision[-2::-1][first][ends > 0]


def _limit(x: np.ndarray, y: np.ndarray, at: np.ndarray, side: str) -> np.ndarray:
    """Interpolate a polyline with vertical parts, as its limit from the left or right of each position."""
    if side == "right":
        return -_limit(-x[::-1], -y[::-1], -at[::-1], "left")[::-1]
    place = np.searchsorted(x, at)
    before = np.maximum(place - 1, 0)
    width = x[place] - x[before]
    share = np.divide(at - x[before], width, out=np.ones(len(at)), where=width > 0)
    return np.where(x[place] == at, y[place], y[before] + share * (y[place] - y[before]))


def _simplified(x: np.ndarray, y: np.ndarray) -> Points:
    """Return a monotone curve with at most two points per step; a corner in each step preserves the area below it."""
    if len(x) <= 2 * MAX_STEPS:
        return x, y
    length = x + y
    kept = np.unique(np.searchsorted(length, np.linspace(0, length[-1], MAX_STEPS + 1)))
    area = np.concatenate([[0.0], np.cumsum(np.diff(x) * (y[1:] + y[:-1]) / 2)])[kept]
    x, y = x[kept], y[kept]
    wide, high = np.diff(x), np.diff(y)
    box = wide * high
    share = np.divide(np.diff(area) - wide * y[:-1], box, out=np.zeros(len(box)), where=box > 0)
    inner = x[:-1] + (1 - share) * wide, y[:-1] + share * high
    return _interleaved(x, inner[0]), _interleaved(y, inner[1])


def _interleaved(ends: np.ndarray, between: np.ndarray) -> np.ndarray:
    return np.append(np.stack([ends[:-1], between], axis=1), ends[-1])


def reliability(frame: pd.DataFrame, classes: Sequence[str]) -> pd.DataFrame:
    """Return how often a class is true in bins of its probability: class 1 of two, else the most probable class.

    The sums of `share` times x and of `share` times y are the mean probability and the observed share. For more than two
    classes, the sum of `share` times the distance of x and y is the expected calibration error.

    Args:
        frame: Predictions with the columns y_true and p_<class>.
        classes: Class names in task order.

    Returns:
        One row per bin with recordings: x (mean probability), y (share of recordings that have the class) and share (of
        all recordings).
    """
    table = frame[[f"p_{label}" for label in classes]].to_numpy(np.float64)
    rated = np.ones(len(table), dtype=np.int64) if len(classes) == 2 else table.argmax(axis=1)
    probability = table[np.arange(len(table)), rated]
    right = np.asarray(classes)[rated] == frame["y_true"].to_numpy()
    bins = np.clip(np.searchsorted(np.linspace(0, 1, BINS + 1), probability) - 1, 0, BINS - 1)
    found = pd.DataFrame({"x": probability, "y": right.astype(float), "share": 1 / len(frame)}).groupby(bins)
    return found.agg({"x": "mean", "y": "mean", "share": "sum"}).reset_index(drop=True)


def operating_point(frame: pd.DataFrame, positive: str) -> tuple[float, float]:
    """Return 1 - specificity and sensitivity of predicted classes; NaN if a class is missing."""
    true, wrong = frame["y_true"] == positive, frame["y_true"] != frame["y_pred"]
    return float(wrong[~true].mean()), float(1 - wrong[true].mean())


def decision_curve(truth: npt.NDArray[np.bool_], probability: np.ndarray) -> Points:
    """Return thresholds and net benefit at the prevalence of the data.

    Net benefit is the fraction of true positives minus the fraction of false positives times the odds of the threshold
    (Vickers and Elkin, Med. Decis. Making 26:565, 2006).

    Args:
        truth: Whether each row is positive, (n,).
        probability: Probability of the positive class, (n,).
    """
    called = probability[:, None] >= THRESHOLDS
    true, false = (called & truth[:, None]).mean(axis=0), (called & ~truth[:, None]).mean(axis=0)
    return THRESHOLDS, true - false * THRESHOLDS / (1 - THRESHOLDS)
