"""Rows for refits on other draws of the training patients, which measure the variation due to the training set."""

import sys
from collections.abc import Iterator
from itertools import islice

import numpy as np

from cardiobench.protocols.base import TaskData
from cardiobench.protocols.learnable import two_answers
from cardiobench.stats.variability import training_weights


def redrawn_rows(data: TaskData, indices: np.ndarray, refits: int, seed: int) -> Iterator[np.ndarray]:
    """Draw training patients with replacement; patients drawn twice have their rows twice, equivalent to a weight of 2.

    The draws depend only on patients, labels and seed, so that two compared models have the same draws. A draw with a
    single class, from which nothing can be learned, is repeated.

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
