"""Do masks and points know the patient? The same answers, dealt to frames of other patients, would fit as well by chance."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from cardiobench.stats.clusters import Clusters
from cardiobench.stats.information import Dealer, Information, tails_of
from cardiobench.tasks.task import Task

DRAWS = 199
SIDE = 64
"""Rows and columns of the small picture of a mask that dealings are scored on."""


def shrunk(mask: np.ndarray) -> np.ndarray:
    """Return a mask (H, W) with `SIDE` rows and columns, the nearest pixel of each, flattened."""
    rows, columns = (((np.arange(SIDE) + 0.5) / SIDE * size).astype(int) for size in mask.shape)
    return mask[np.ix_(rows, columns)].ravel()


def dealt_test(
    fit: Callable[[np.ndarray, np.ndarray, int], float],
    task: Task,
    frame: pd.DataFrame,
    truths: Sequence[np.ndarray],
    answers: Sequence[np.ndarray],
    draws: int = DRAWS,
    seed: int = 0,
) -> Information:
    """Test whether answers fit the patients they were given for better than others of the same view and phase.

    Args:
        fit: Sum over frames of how well answers fit, from truths, answers and the number of structures; more is better.
        task: of the labels.
        frame: patient_id, view and phase of each frame.
        truths: small masks, or points in mm.
        answers: the same of the predictions.
        draws: B of the dealings.
        seed: of the draws.

    Returns:
        The outcome, by the ranking metric.
    """
    truth, answer = np.stack(truths), np.stack(answers)
    rng = np.random.default_rng(seed)
    patients = Clusters.of(frame["patient_id"].to_numpy()).count
    dealt = np.zeros(draws)
    for _, rows in frame.reset_index(drop=True).fillna("").groupby(["view", "phase"], sort=True):
        dealer = Dealer(Clusters.of(rows["patient_id"].to_numpy()), rng)
        chosen = rows.index.to_numpy()[dealer.rows]
        every = (source for sources in dealer.deal(draws) for source in sources)
        for draw, source in enumerate(every):
            dealt[draw] += fit(truth[chosen], answer[chosen[source]], len(task.structures))
    observed = fit(truth, answer, len(task.structures))
    return Information.of(tails_of(observed, dealt), task.metrics[0], patients)


def overlap(truth: np.ndarray, answer: np.ndarray, structures: int) -> float:
    """Return the sum over frames of the Dice of their structures."""
    total = 0.0
    for label in range(1, structures + 1):
        one, other = truth == label, answer == label
        pixels = one.sum(axis=1) + other.sum(axis=1)
        total += float((2 * (one & other).sum(axis=1) / np.maximum(pixels, 1)).sum())
    return total


def closeness(truth: np.ndarray, answer: np.ndarray) -> float:
    """Return minus the sum of all distances between labelled points and answers."""
    return -float(np.nansum(np.sqrt(((truth - answer) ** 2).sum(axis=-1))))
