"""The rate cut: answer each class as often as patients that a model was not fitted to have it."""

from dataclasses import replace
from typing import Any

import numpy as np

from cardiobench.data.spec import Task
from cardiobench.protocols.base import ProtocolOutput, TaskData, Units

ARGMAX = "the most probable class"
FEWEST = 50
"""Patients that a cut is chosen on at least: the fewest for which simulation shows that it helps (`benchmarks/validity`)."""
ROUNDS, STEP = 60, 0.3
"""Rounds in which the weights of several classes are corrected, and the share of the correction that each makes."""


def rate_cut(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the weights by which probabilities are multiplied before the largest is the answer, (K,), all positive.

    With them each class is answered as often as the labels have it, as nearly as equal probabilities allow. Two classes
    have weights (t, 1 - t), so that the positive one is answered from the probability t on; several classes are weighted in
    rounds. A class that no label has keeps its weight.

    Args:
        probabilities: Probabilities of held-out units, shape (n, K).
        labels: Class codes of these units, (n,).
    """
    counts = np.bincount(labels, minlength=probabilities.shape[1])
    if len(counts) == 2:
        threshold = _threshold(probabilities[:, 1], int(counts[1]))
        return np.array([threshold, 1 - threshold])
    logarithms = np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))
    offsets, best, least = np.zeros(len(counts)), np.zeros(len(counts)), np.inf
    for _ in range(ROUNDS):
        answered = np.bincount((logarithms + offsets).argmax(axis=1), minlength=len(counts))
        if (wrong := np.abs(answered - counts).sum()) < least:
            best, least = offsets.copy(), wrong
        offsets += np.where(counts > 0, STEP * np.log((counts + 0.5) / (answered + 0.5)), 0)
    return np.exp(best - best.max())


def _threshold(scores: np.ndarray, positives: int) -> float:
    """Return the threshold between two scores that about so many reach; of equal ones that nearest to one half."""
    levels = np.unique(np.concatenate([[0.0], scores, [1.0]]))
    middles = (levels[1:] + levels[:-1]) / 2
    reached = len(scores) - np.searchsorted(np.sort(scores), middles)
    wrong = np.abs(reached - positives)
    nearest = np.flatnonzero(wrong == wrong.min())
    return float(min(middles[nearest], key=lambda middle: abs(middle - 0.5)))


def cut_by_validation(data: TaskData, output: ProtocolOutput) -> ProtocolOutput:
    """Return an output with the cut chosen on held-out answers, and with its details for the result.

    They are those of the validation patients, and where these are too few those of inner folds. A protocol that has set its
    own cut keeps it; one that has neither answers the most probable class.
    """
    task = data.task
    if task.rules.answer != "class" or output.cut is not None:
        return output
    sources = (("validation patients", output.validation), ("patients of inner folds", output.inner))
    for source, held in sources:
        if held is None or (patients := len(np.unique(data.patients[held.indices]))) < FEWEST:
            continue
        units = Units.of(data, held.indices)
        truth = np.empty(len(units.ids), dtype=np.int64)
        truth[units.of_recording] = data.labels[held.indices]
        if len(np.unique(truth)) < 2:
            continue
        weights = rate_cut(units.mean(held.values), truth)
        details = {"cut": cut_facts(weights, task), "cut_chosen_on": f"{patients} {source}"}
        return replace(output, cut=weights, details={**output.details, **details})
    few = f": fewer than {FEWEST} patients to choose a cut on" if any(held for _, held in sources) else ""
    return replace(output, details={"cut": f"{ARGMAX}{few}", **output.details})


def cut_facts(weights: np.ndarray, task: Task) -> dict[str, Any]:
    """Return the details of a cut: the threshold of the positive class of two, or the weight of each class."""
    if task.rules.two_classes:
        return {f"p_{task.classes[1]} from": float(weights[0])}
    return {f"p_{name} times": float(weight) for name, weight in zip(task.classes, weights, strict=True)}
