"""Native heads: what a model's own trained outputs say of a task, without any learning here."""

from dataclasses import dataclass

import numpy as np

from cardiobench.core.errors import BadModel, NotApplicable
from cardiobench.data.spec import VIEWS, Task
from cardiobench.models.base import Encoder, NativeHeads
from cardiobench.protocols.base import PredictionProtocol, ProtocolOutput, TaskData


@dataclass(frozen=True)
class NativeAnswers(PredictionProtocol):
    """The answers of the model's own heads, from the stored vectors of all recordings of a unit of scoring."""

    name = "native"

    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> ProtocolOutput:
        """One answer a unit of scoring; `NotApplicable` for a model whose heads do not answer this task."""
        target = data.task.target
        if not isinstance(encoder, NativeHeads):
            raise NotApplicable(f"{encoder.name} has no trained heads of its own")
        if target not in encoder.native:
            answered = ", ".join(encoder.native) or "nothing here"
            raise NotApplicable(f"the heads of {encoder.name} do not answer '{target}' (they answer {answered})")
        test = data.indices("test")
        members = lines_of_units(data, test)
        vectors = [np.concatenate([data.embeddings.parts(line) for line in lines]) for lines in members]
        answers = np.asarray(encoder.predict_native(target, vectors), dtype=np.float64)
        # One line stands for its unit, so that nothing is averaged again.
        return ProtocolOutput(
            np.array([lines[0] for lines in members]), as_values(answers, data.task, encoder.name), {}
        )


def lines_of_units(data: TaskData, lines: np.ndarray) -> list[np.ndarray]:
    """The lines of each unit of scoring, units in the order in which they first come."""
    unit = data.rows[data.task.unit_column].to_numpy()[lines]
    members: dict[object, list[int]] = {}
    for line, name in zip(lines, unit, strict=True):
        members.setdefault(name, []).append(int(line))
    return [np.array(found) for found in members.values()]


def as_values(answers: np.ndarray, task: Task, model: str) -> np.ndarray:
    """Answers of heads in the form of `ProtocolOutput.values`: numbers (n,), or a probability for every class (n, classes).

    Raises:
        BadModel: not finite, of another shape than `NativeHeads.predict_native` promises, or no probabilities.
    """
    expected = (len(VIEWS),) if task.kind == "multiclass" else ()
    if answers.shape[1:] != expected or not np.isfinite(answers).all():
        raise BadModel(
            f"the heads of {model} gave shape {answers.shape} for {task.name}, expected (n, {', '.join(map(str, expected))}), "
            "or numbers that are not finite. Correct predict_native of its adapter."
        )
    if task.kind == "regression":
        return answers
    if answers.min(initial=0) < 0 or answers.max(initial=0) > 1:
        raise BadModel(
            f"the heads of {model} gave numbers outside [0, 1] for {task.name}, which asks for probabilities."
        )
    if task.kind == "binary":
        return np.stack([1 - answers, answers], axis=1)
    return answers[:, [VIEWS.index(name) for name in task.classes]]
