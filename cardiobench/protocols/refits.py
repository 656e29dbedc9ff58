"""Rows for refits on other draws of the training patients, which measure the variation due to the training set."""

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from cardiobench.protocols.base import TaskData
from cardiobench.protocols.learnable import two_answers
from cardiobench.stats.variability import training_weights

DIGITS = 16


def digest_of_draws(data: TaskData, drawn: Iterable[np.ndarray]) -> str:
    """Return a digest of drawn training patients: the ids of all of them, and their weights in each draw; 16 hex digits.

    Args:
        data: Data of the task.
        drawn: Indices of the recordings of each draw (`redrawn_rows`).
    """
    pool = data.indices("train", "validation")
    names, codes = np.unique(data.patients[pool].astype(str), return_inverse=True)
    of_row = np.zeros(len(data.rows), dtype=np.int64)
    of_row[pool] = codes
    recordings = np.bincount(codes)
    digest = hashlib.sha256(json.dumps(names.tolist()).encode())
    for rows in drawn:
        digest.update((np.bincount(of_row[rows], minlength=len(names)) // recordings).astype("<i8").tobytes())
    return digest.hexdigest()[:DIGITS]


def digest_of_seeds(seeds: Iterable[int]) -> str:
    """Return a digest of the seeds of several trainings, 16 hex digits."""
    return hashlib.sha256(json.dumps(list(seeds)).encode()).hexdigest()[:DIGITS]


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
