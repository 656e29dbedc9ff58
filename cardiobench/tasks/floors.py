"""Floors: the best scores reachable on average without looking at the recording."""

import numpy as np
import pandas as pd

from cardiobench.metrics.load import find_metric
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.score_result import Floor
from cardiobench.tasks.labels import label_values
from cardiobench.tasks.task import Task

EVEN = 0.5
"""Probability of every class in a constant answer to a multilabel task, which assigns all classes; the ranking does not
depend on it."""
COLLAPSED_SPREAD = 0.01  # Fraction of the standard deviation of the references.
SENTENCE = "Floor: the best score reachable on average without looking at the recording, by a constant or by guessing."

OF_CONSTANT = "no closed form is known for this metric: the best constant"


def floors(metric: Metric, key: str, task: Task, references: pd.DataFrame, y_true: np.ndarray) -> dict[str, Floor]:
    """Compute the floors of a task; verdicts use `best_uninformed`.

    Args:
        metric: The metric that ranks models.
        key: Key of the metric's number.
        task: Regression or classification.
        references: References of all splits; the train rows give `train_constant`.
        y_true: True values or class codes of the scored rows, (n,), or class matrix, (n, K).

    Returns:
        Floors `best_uninformed`, `best_constant` (chosen on the test labels) and `train_constant`.
    """
    train = references.loc[references["split"] == "train", "y_true"]
    known = label_values(train, task)
    constant_floor = best_constant(metric, key, task, y_true)
    return {
        "best_uninformed": best_uninformed(key, y_true, len(task.classes), constant_floor, metric),
        "best_constant": constant_floor,
        "train_constant": train_constant(metric, key, task, y_true, known),
    }


def best_uninformed(
    key: str, y_true: np.ndarray, classes: int, constant_floor: Floor | None = None, metric: Metric | None = None
) -> Floor:
    """Compute the best expected score of predictions that ignore the recording, in closed form.

    Args:
        key: Key of the number.
        y_true: Class codes or values of the scored rows, (n,), or class matrix, (n, K).
        classes: Number of classes; 0 for numbers.
        constant_floor: Floor of a number without a closed form; if None, there is no floor.
        metric: Metric that computes the number; None uses the one of this package.
    """
    value, by = _closed_form(key, y_true, classes, metric or find_metric(key))
    if by == OF_CONSTANT and constant_floor is not None and not np.isnan(constant_floor.value):
        return Floor(constant_floor.value, constant_floor.prediction, reached_by=OF_CONSTANT)
    if np.isnan(value):
        return Floor(np.nan, reason=by)
    return Floor(float(value), reached_by=by)


def _closed_form(key: str, y_true: np.ndarray, classes: int, metric: Metric | None) -> tuple[float, str]:
    if y_true.ndim == 2:
        shares = _shares(y_true)
        if not ((shares > 0) & (shares < 1)).any():
            return np.nan, "no class that some rows of the test set have and others lack"
    elif classes and len(np.unique(y_true)) < 2:
        return np.nan, "one class in the test set: every answer of that class is right"
    known = metric.floor(y_true, classes) if metric is not None and metric.floor is not None else {}
    return known.get(key, (np.nan, OF_CONSTANT))


def _shares(y_true: np.ndarray) -> np.ndarray:
    """Return the share of positives among the rows in which each class was measured.

    The shape is (K,); 0 if never measured.
    """
    return np.nansum(y_true, axis=0) / np.maximum((~np.isnan(y_true)).sum(axis=0), 1)


def constant(y_true: np.ndarray, value: float) -> ScoringInput:
    """Predict one value for all rows; for a multilabel task one probability for all classes."""
    if y_true.ndim == 2:
        return ScoringInput(y_true, np.full(y_true.shape, float(value >= EVEN)), np.full(y_true.shape, value))
    return ScoringInput(y_true, np.full(y_true.shape, value, dtype=y_true.dtype))


def best_constant(metric: Metric, key: str, task: Task, y_true: np.ndarray) -> Floor:
    """Compute the best score of a constant prediction, chosen on the test labels.

    A classification uses the best class; a regression the median (optimal for absolute error) or the mean (optimal for
    squared error), whichever is better.
    """
    if y_true.ndim == 2:
        values = [EVEN]
    else:
        values = list(range(len(task.classes))) if task.classes else [float(np.median(y_true)), float(np.mean(y_true))]
    scored = [(metric.value(constant(y_true, value))[key], value) for value in values]
    defined = [pair for pair in scored if not np.isnan(pair[0])]
    if not defined:
        return Floor(np.nan, reason="the metric is undefined for a constant answer")
    best = max if metric.numbers[key].higher_is_better else min
    score, value = best(defined, key=lambda pair: pair[0])
    return Floor(float(score), _answer(task, value), reached_by="one answer to everything, chosen on the test labels")


def train_constant(metric: Metric, key: str, task: Task, y_true: np.ndarray, train: np.ndarray) -> Floor:
    """Compute the score of the constant answer from the train split: its majority class, or the constant named by the number.

    All recordings of a multilabel task get the same probabilities.
    """
    if not len(train):
        return Floor(np.nan, reason="the references have no train rows")
    if y_true.ndim == 2:
        value = EVEN
    elif task.classes:
        value = float(np.bincount(train).argmax())
    else:
        value = float(np.median(train) if metric.numbers[key].constant == "median" else train.mean())
    score = metric.value(constant(y_true, value))[key]
    return Floor(float(score), _answer(task, value), reached_by="one answer to everything, chosen on the train labels")


def _answer(task: Task, value: float) -> str | float:
    if task.rules.answer == "labels":
        return "the same for all"
    return task.classes[int(value)] if task.classes else float(value)


def is_collapsed(task: Task, sample: ScoringInput) -> bool:
    """Return whether a model predicts (nearly) the same for everything.

    This is the case if there is a single class, or if the standard deviation of the values or of the probabilities of
    every class is at most 1 % of that of the references. It is never the case for a single row.
    """
    if len(sample) < 2:
        return False
    if sample.multilabel:
        shares = _shares(sample.y_true)
        spread = np.sqrt(shares * (1 - shares))
        ranked = spread > 0
        return bool((np.std(sample.scores, axis=0) <= COLLAPSED_SPREAD * spread)[ranked].all())
    if task.classes:
        return bool((sample.y_pred == sample.y_pred[0]).all())
    return bool(np.std(sample.y_pred) <= COLLAPSED_SPREAD * np.std(sample.y_true))
