"""Rows for refits on other draws of the training patients: how much of a score is owed to this training set."""

import sys
from collections.abc import Iterator
from itertools import islice

import numpy as np

from cardiobench.protocols.base import TaskData
from cardiobench.protocols.learnable import two_answers
from cardiobench.stats.variability import training_weights


def redrawn_rows(data: TaskData, indices: np.ndarray, refits: int, seed: int) -> Iterator[np.ndarray]:
    """Draw training patients with replacement; a patient drawn twice gives its rows twice, as a weight of 2 would.

    The draws depend on the patients, labels and seed alone, so those of two models that are compared are the same. A draw
    without two classes, from which nothing can be learned, is made again.

    Args:
        data: Data of the task.
        indices: Indices of the training rows, shape (n,).
        refits: Number of draws.
        seed: Seed of the draws.

    Yields:
        Indices of the drawn rows.
    """
    weights = training_weights(data.patients[indices], sys.maxsize, seed)
    draws = (np.repeat(indices, drawn.astype(np.int64)) for drawn in weights)
    if data.task.classes:
        draws = (rows for rows in draws if two_answers(data.labels[rows]))
    return islice(draws, refits)
