"""Predictions of a model's own trained heads, without any training here."""

from dataclasses import dataclass

import numpy as np

from cardiobench.core.errors import BadModel, NotApplicable
from cardiobench.data.spec import VIEWS, Task
from cardiobench.models.base import Encoder, NativeHeads
from cardiobench.protocols.base import PredictionProtocol, ProtocolOutput, TaskData
from cardiobench.tasks.answers import OTHER

COMPONENT = "protocol native"
VERSION = 2


@dataclass(frozen=True)
class NativePrediction(PredictionProtocol):
    """Predict with the model's own heads, from the stored vectors of all recordings of a unit of scoring."""

    name = "native"
    headline_rank = 3

    def check_encoder(self, encoder: Encoder, task: Task) -> None:
        """Refuse a model without a head for the task's target."""
        native_heads(encoder, task)

    def reads_training(self, variant: str) -> bool:
        """Return False, because the heads are already trained."""
        return False

    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> ProtocolOutput:
        """Predict each unit of scoring once; `NotApplicable` for a model without a head for this target."""
        target, heads = data.task.target, native_heads(encoder, data.task)
        members = rows_of_units(data, data.indices("test"))
        vectors = [np.concatenate([data.embeddings.parts(row) for row in rows]) for rows in members]
        outputs = np.asarray(heads.predict_native(target, vectors), dtype=np.float64)
        # Return a single row per unit, so that predictions are not averaged again.
        first = np.array([rows[0] for rows in members])
        return ProtocolOutput(first, check_outputs(outputs, data.task, encoder.name), {})


def native_heads(encoder: Encoder, task: Task) -> NativeHeads:
    """Return the model as one with a trained head for a task's target, or raise `NotApplicable`."""
    if not isinstance(encoder, NativeHeads):
        raise NotApplicable(f"{encoder.name} has no trained heads of its own")
    if task.target not in encoder.native:
        targets = ", ".join(encoder.native) or "nothing here"
        raise NotApplicable(f"the heads of {encoder.name} do not predict '{task.target}' (they predict {targets})")
    return encoder


def rows_of_units(data: TaskData, indices: np.ndarray) -> list[np.ndarray]:
    """Return the rows (m,) of each unit of scoring, units in the order of their first row."""
    units = data.rows[data.task.unit_column].to_numpy()[indices]
    members: dict[object, list[int]] = {}
    for row, unit in zip(indices, units, strict=True):
        members.setdefault(unit, []).append(int(row))
    return [np.array(rows) for rows in members.values()]


def check_outputs(outputs: np.ndarray, task: Task, model: str) -> np.ndarray:
    """Check outputs of heads and return them as `ProtocolOutput.values`: numbers (n,), or probabilities (n, classes).

    Probabilities of views outside the task's classes follow in further columns, or belong to the class `Other` if the
    task has it. They are not renormalised.

    Raises:
        BadModel: The outputs are not finite, do not have the shape documented in `NativeHeads.predict_native`, or are
            not probabilities.
    """
    of_classes = 0 if task.rules.two_classes and not _of_views(task) else len(VIEWS)
    width = {"class": of_classes, "labels": len(task.classes)}.get(task.rules.answer)
    expected = (width,) if width else ()
    if outputs.shape[1:] != expected or not np.isfinite(outputs).all():
        found = f"shape {outputs.shape}" if outputs.shape[1:] != expected else "numbers that are not finite"
        shape = f"(n, {width})" if width else "(n,)"
        raise BadModel(
            f"the heads of {model} gave {found} for {task.name}; expected finite numbers of shape {shape}. "
            "Correct predict_native of its adapter."
        )
    if task.rules.answer == "number":
        return outputs
    if outputs.min(initial=0) < 0 or outputs.max(initial=0) > 1:
        raise BadModel(
            f"the heads of {model} gave numbers outside [0, 1] for {task.name}, which asks for probabilities. "
            "Correct predict_native of its adapter."
        )
    if task.rules.answer == "labels":
        return outputs
    if not of_classes:
        return np.stack([1 - outputs, outputs], axis=1)
    chosen = outputs[:, [VIEWS.index(name) for name in task.classes]]
    beyond = outputs[:, [code for code, name in enumerate(VIEWS) if name not in task.classes]]
    if OTHER not in task.classes:
        return np.hstack([chosen, beyond])
    chosen[:, task.classes.index(OTHER)] += beyond.sum(axis=1)
    return chosen


def _of_views(task: Task) -> bool:
    """Return whether all classes of a task are views, of which heads return all probabilities."""
    return set(task.classes) <= set(VIEWS)
