"""Missing answers: the score if every one of them were right, and if every one were as wrong as it can be."""

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
    """Answer the missing rows in the worst or in the best way; they come after the answered rows.

    A wrong class is the one that costs macro F1 most, row by row (exact for fixed totals, since each F1 is convex in its
    false positives); its probability is 1. Of a multilabel task answers and probabilities are 0 where they should be 1, and 1
    where they should be 0. A wrong number is the end of the label's range that is farther from the truth.

    Args:
        answered: The rows with answers.
        missing: True classes or values of the rows without, (m,), or their classes, (m, K).
        classes: K; 0 for numbers.
        label_range: Label range of a number; None for the range of the true values.
        worst: Else the best way, which is the truth itself.
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
        answers = _costliest(confusion_table(answered.y_true, answered.y_pred, classes), missing)
    else:
        low, high = label_range or (float(truth.min()), float(truth.max()))
        answers = np.where(missing - low > high - missing, low, high)
    probabilities = None
    if answered.probabilities is not None:
        probabilities = np.concatenate([answered.probabilities, np.eye(classes)[answers]])
    return ScoringInput(truth, np.concatenate([answered.y_pred, answers]), probabilities)


def _costliest(table: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return the wrong class of each missing row, (m,), whose false positives lower macro F1 most."""
    lost = np.bincount(missing, minlength=len(table)).astype(np.float64)
    hits, true, said = np.diag(table), table.sum(1) + lost, table.sum(0)
    present = true > 0
    answers = np.empty(len(missing), dtype=np.int64)
    for place, label in enumerate(missing):
        size = np.maximum(true + said, 1)
        cost = np.where(present, 2 * hits / size - 2 * hits / (size + 1), 0)
        cost[label] = -1  # The right answer cannot be the wrong one.
        answers[place] = int(np.argmax(cost))
        said[answers[place]] += 1
    return answers
