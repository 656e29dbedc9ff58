"""Bounds for missing answers: the score if all of them were right, and if all were as wrong as possible."""

import numpy as np

from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.stats.intervals import confusion_table


def completed(
    answered: ScoringInput,
    missing: np.ndarray,
    classes: int,
    label_range: tuple[float, float] | None = None,
    *,
    worst: bool,
) -> ScoringInput:
    """Fill in the missing rows with the worst or the best answers, after the answered rows.

    The wrong class is the one that lowers macro F1 most, row by row (exact for fixed totals, because each F1 is convex
    in its false positives), with probability 1. For a multilabel task answers and probabilities are inverted. A wrong
    number is the end of the label's range farther from the truth.

    Args:
        answered: Rows with answers.
        missing: True classes or values of the rows without answers, (m,), or their classes, (m, K).
        classes: Number of classes; 0 for numbers.
        label_range: Range of a number; None for the range of the true values.
        worst: Whether to use the worst answers; the best answers are the true ones.
    """
    truth = np.concatenate([answered.y_true, missing])
    if answered.multilabel:
        answers = np.nan_to_num(1 - missing if worst else missing)
        scores = answered.probabilities
        scores = None if scores is None else np.concatenate([scores, answers])
        return ScoringInput(truth, np.concatenate([answered.y_pred, answers]), scores)
    if not worst:
        answers = missing
    elif classes:
        outcomes = answered.outcomes(classes)
        answers = _costliest(confusion_table(answered.y_true, answered.y_pred, classes, outcomes), missing)
    else:
        low, high = label_range or (float(truth.min()), float(truth.max()))
        answers = np.where(missing - low > high - missing, low, high)
    probabilities = None
    if answered.probabilities is not None:
        probabilities = np.concatenate([answered.probabilities, np.eye(classes)[answers]])
    return ScoringInput(truth, np.concatenate([answered.y_pred, answers]), probabilities, answered.classes)


def _costliest(table: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return the wrong class of each missing row, (m,), whose false positives lower macro F1 most."""
    lost = np.bincount(missing, minlength=len(table)).astype(np.float64)
    hits, true, said = np.diag(table), table.sum(1) + lost, table.sum(0)[: len(table)]
    present = true > 0
    answers = np.empty(len(missing), dtype=np.int64)
    for place, label in enumerate(missing):
        size = np.maximum(true + said, 1)
        cost = np.where(present, 2 * hits / size - 2 * hits / (size + 1), 0)
        cost[label] = -1  # The true class is excluded.
        answers[place] = int(np.argmax(cost))
        said[answers[place]] += 1
    return answers
