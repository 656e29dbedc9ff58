"""Mean of the predictions of several trainings."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cardiobench.protocols.base import HeldOut, ProtocolOutput, TaskData

Answers = tuple[np.ndarray, np.ndarray, Mapping[str, Any]]
"""Predictions for test recordings, for validation recordings, and the summary of one training."""


def mean_of_trainings(
    data: TaskData, answers: Sequence[Answers], details: Mapping[str, Any], seed: int
) -> ProtocolOutput:
    """Return the mean of the predictions of several trainings, with those of each training as repeats.

    Args:
        data: Recordings of the task.
        answers: Predictions of each training.
        details: Details of the output; the summaries of the trainings are added as lists.
        seed: Seed of the first training; the others have the following seeds.
    """
    values, held_out, summaries = zip(*answers, strict=True)
    validation = data.indices("validation")
    return ProtocolOutput(
        data.indices("test"),
        np.mean(values, axis=0),
        {**details, **{name: [one[name] for one in summaries] for name in summaries[0]}},
        repeats=values,
        seeds=tuple(range(seed, seed + len(values))),
        validation=HeldOut(validation, np.mean(held_out, axis=0), held_out) if len(validation) else None,
    )
