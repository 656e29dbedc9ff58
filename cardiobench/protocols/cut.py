"""Choose decision thresholds at which each class is predicted as often as it occurs in held-out patients."""

from dataclasses import replace
from typing import Any

import numpy as np

from cardiobench.data.spec import Task
from cardiobench.protocols.base import HeldOut, ProtocolOutput, TaskData, Units

ARGMAX = "the most probable class"
FEWEST = 50
"""Minimum number of patients for choosing thresholds, according to simulation (`benchmarks/validity`)."""
ROUNDS, STEP = 60, 0.3
"""Number of rounds in which the weights of several classes are corrected, and the step size of each correction."""


def rate_cut(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the weights that multiply probabilities before the largest is chosen, (K,), all positive.

    With these weights each class is predicted as often as it occurs in the labels, as nearly as ties allow. Two classes
    have weights (t, 1 - t), which is a threshold of t for the positive class; several classes are weighted in rounds.
    Classes without a label keep their weight.

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
    """Return the threshold between two scores that the given number of scores reaches; among ties the nearest to one half.

    Takes probabilities (n,) and returns a number between 0 and 1.
    """
    levels = np.unique(np.concatenate([[0.0], scores, [1.0]]))
    middles = (levels[1:] + levels[:-1]) / 2
    reached = len(scores) - np.searchsorted(np.sort(scores), middles)
    wrong = np.abs(reached - positives)
    nearest = np.flatnonzero(wrong == wrong.min())
    return float(min(middles[nearest], key=lambda middle: abs(middle - 0.5)))


def cut_by_validation(data: TaskData, output: ProtocolOutput) -> ProtocolOutput:
    """Return an output with thresholds chosen on held-out predictions, and with details for the result.

    The held-out predictions are those of the validation patients, or of inner folds if there are too few. A protocol
    that has set its own thresholds keeps them; without held-out predictions the most probable class is predicted.
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
        cuts = _cuts_of_refits(output, held, units, truth, weights)
        return replace(output, cut=weights, refit_cuts=cuts, details={**output.details, **details})
    few = f": fewer than {FEWEST} patients to choose a cut on" if any(held for _, held in sources) else ""
    return replace(output, details={"cut": f"{ARGMAX}{few}", **output.details})


def _cuts_of_refits(
    output: ProtocolOutput, held: HeldOut, units: Units, truth: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return the thresholds of each refit, chosen on the held-out units whose patients were drawn, as often as they were.

    The threshold varies between training sets like the model itself. A draw with a single class keeps the chosen one.

    Args:
        output: Predictions with their refits.
        held: Held-out predictions, with those of the refits if there are any.
        units: Units of these predictions, m.
        truth: Class codes of the units, (m,).
        chosen: Thresholds of the model itself.
    """
    first = np.unique(units.of_recording, return_index=True)[1]
    cuts = []
    for number, rows in enumerate(output.drawn if output.refits else ()):
        values = held.refits[number] if held.refits else held.values
        often = np.bincount(rows, minlength=int(held.indices.max()) + 1)[held.indices[first]]
        labels = np.repeat(truth, often)
        several = len(np.unique(labels)) > 1
        cuts.append(rate_cut(np.repeat(units.mean(values), often, axis=0), labels) if several else chosen)
    return tuple(cuts)


def cut_facts(weights: np.ndarray, task: Task) -> dict[str, Any]:
    """Return the details of a cut: the threshold of the positive class of two, or the weight of each class."""
    if task.rules.two_classes:
        return {f"p_{task.classes[1]} from": float(weights[0])}
    return {f"p_{name} times": float(weight) for name, weight in zip(task.classes, weights, strict=True)}
