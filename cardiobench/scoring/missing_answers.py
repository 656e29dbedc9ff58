"""Predictions with their missing answers filled in: as wrong as they can be, or right."""

from dataclasses import replace

import numpy as np
import pandas as pd

from cardiobench.tasks.answers import TableAnswers, probability_columns
from cardiobench.tasks.bounds import completed
from cardiobench.tasks.labels import label_cells, label_values


def fill_missing(predictions: TableAnswers, *, worst: bool) -> TableAnswers:
    """Return predictions for every unit of the split.

    Args:
        predictions: Predictions, some of which may be missing.
        worst: Whether a missing answer is as wrong as it can be (`tasks.bounds`); else it is the truth.

    Returns:
        The same predictions, the missing ones after the others.
    """
    task, missing = predictions.task, predictions.missing
    if missing is None:
        return predictions
    truth = label_values(missing["y_true"], task)
    sample = completed(predictions.sample(), truth, len(task.classes), task.label_range, worst=worst)
    answers = sample.take(np.arange(len(predictions.frame), len(sample)))
    probabilities = answers.y_pred if sample.multilabel else answers.probabilities
    rows = missing.copy()
    if sample.multilabel:
        rows["y_pred"] = label_cells(answers.y_pred, task.classes)
    else:
        rows["y_pred"] = np.array(task.classes, dtype=object)[answers.y_pred] if task.classes else answers.y_pred
    if probabilities is not None:
        rows[probability_columns(task)] = probabilities
    return replace(predictions, frame=pd.concat([predictions.frame, rows], ignore_index=True), missing=None)
