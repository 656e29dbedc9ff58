"""Predictions with missing answers filled in by the worst or by the true answer."""

from dataclasses import replace

import numpy as np
import pandas as pd

from cardiobench.tasks.answers import TableAnswers
from cardiobench.tasks.labels import label_values


def fill_missing(predictions: TableAnswers, *, worst: bool) -> TableAnswers:
    """Return predictions for every unit of the split.

    Args:
        predictions: Predictions, possibly with missing answers.
        worst: Whether missing answers are the worst possible (`tasks.bounds`), else the true ones.

    Returns:
        The same predictions, followed by the missing ones.
    """
    task, missing = predictions.task, predictions.missing
    if missing is None:
        return predictions
    truth = label_values(missing["y_true"], task)
    sample = task.rules.completed(predictions.sample(), truth, task, worst=worst)
    answers = sample.take(np.arange(len(predictions.frame), len(sample)))
    rows = missing.assign(**task.rules.cells(answers, task))
    return replace(predictions, frame=pd.concat([predictions.frame, rows], ignore_index=True), missing=None)
