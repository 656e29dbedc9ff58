"""What a protocol is: a rule that turns the embeddings of a task's recordings into predictions. It never scores."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from cardiobench.data.spec import Task
from cardiobench.embeddings.store import Embeddings
from cardiobench.models.base import Encoder


@dataclass(frozen=True)
class TaskData:
    """The recordings of a task, their labels and their embeddings, line by line.

    Attributes:
        task: the question.
        rows: id, patient_id, split and the columns of the dataset; one line a recording.
        embeddings: in the order of `rows`.
        pooling: of the encoder (`Encoder.pooling`).
        prompts: another prompt set than the dataset's own.
    """

    task: Task
    rows: pd.DataFrame
    embeddings: Embeddings
    pooling: str
    prompts: Path | None = None

    @cached_property
    def features(self) -> np.ndarray:
        """One vector a recording, float64, (n, dim)."""
        return self.embeddings.pooled(self.pooling)

    @cached_property
    def labels(self) -> np.ndarray:
        """Numbers of a regression, class indices otherwise."""
        column = self.rows[self.task.target]
        if self.task.kind == "regression":
            return column.to_numpy(dtype=np.float64)
        return column.map({name: index for index, name in enumerate(self.task.classes)}).to_numpy(dtype=np.int64)

    @cached_property
    def patients(self) -> np.ndarray:
        """Patient of each line."""
        return self.rows["patient_id"].to_numpy()

    def lines(self, *splits: str) -> np.ndarray:
        """Positions of the lines of these splits."""
        return np.flatnonzero(self.rows["split"].isin(splits))


@dataclass(frozen=True)
class ProtocolOutput:
    """What a protocol says of the test recordings.

    Attributes:
        lines: positions in `TaskData.rows`.
        values: predicted numbers (n,), or class probabilities (n, classes).
        details: what was chosen on the way (regularisation, k, prompt set); stamped into the result.
        out_of_fold: the lines are those of a cross-validation, each answered by a model that never saw its patient.
    """

    lines: np.ndarray
    values: np.ndarray
    details: Mapping[str, Any]
    out_of_fold: bool = False


@runtime_checkable
class PredictionProtocol(Protocol):
    """A named rule. `variants` lists its named decodings for a task, one result each; `("",)` when there is one only."""

    name: str

    def variants(self, task: Task) -> tuple[str, ...]:
        """Names of the ways it answers this task."""
        ...

    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> ProtocolOutput:
        """Predictions for the test lines; raises `NotApplicable` where the model cannot take part."""
        ...


def options(protocol: PredictionProtocol) -> dict[str, Any]:
    """The options of a protocol, for the stamp."""
    return asdict(protocol)


def aggregate(data: TaskData, output: ProtocolOutput) -> pd.DataFrame:
    """Predictions a unit of scoring: the mean over its recordings' numbers or probabilities, then the class.

    Returns:
        id, y_pred and, for classification, p_<class>. The class is the likeliest one; of two, the positive one on a tie.
    """
    task = data.task
    unit = data.rows[task.unit_column].to_numpy()[output.lines]
    if task.kind == "regression":
        frame = pd.DataFrame({"id": unit, "y_pred": output.values})
        return frame.groupby("id", sort=False, as_index=False).mean()
    columns = [f"p_{name}" for name in task.classes]
    frame = pd.DataFrame(output.values, columns=columns)
    frame.insert(0, "id", unit)
    frame = frame.groupby("id", sort=False, as_index=False).mean()
    probabilities = frame[columns].to_numpy()
    # Reversed, so that the last of two equals (the positive class) wins.
    winner = probabilities.shape[1] - 1 - probabilities[:, ::-1].argmax(axis=1)
    if task.kind == "multiclass":
        winner = probabilities.argmax(axis=1)
    frame["y_pred"] = np.asarray(task.classes, dtype=object)[winner]
    return frame
