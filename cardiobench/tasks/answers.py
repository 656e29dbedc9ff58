"""Answers of a table joined with their references: one row per unit."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from cardiobench.core.tables import write_parquet
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.tasks.labels import label_values
from cardiobench.tasks.task import Task


def probability_columns(task: Task) -> list[str]:
    """Return the names of the probability columns in the task's class order."""
    return [f"p_{name}" for name in task.classes]


@dataclass(frozen=True)
class TableAnswers:
    """Answers to a task, joined with their references.

    Attributes:
        task: Task that is answered.
        frame: One row per unit: id, patient_id, y_true, y_pred, `p_<class>` where known, columns of the groups.
        expected: Number of units of the split of the complete release; more than the rows where some have no answer, None
            where it is not known.
        source: Origin of the answers, for messages.
        warnings: Sentences for the reader of the score.
        missing: id, patient_id and y_true of the units without an answer; None where nothing is known of them.
        out_of_fold: Whether the units are of all splits, each predicted by a model that never saw its patient.
    """

    task: Task
    frame: pd.DataFrame
    expected: int | None
    source: str = "predictions"
    warnings: tuple[str, ...] = ()
    missing: pd.DataFrame | None = None
    out_of_fold: bool = False

    @property
    def patients(self) -> np.ndarray:
        """Patient of each row, (n,)."""
        return self.frame["patient_id"].to_numpy()

    def sample(self) -> ScoringInput:
        """Return the rows as arrays: float64 values, class codes in the task's class order, or the classes of each row."""
        columns = probability_columns(self.task)
        if self.task.rules.answer == "labels":
            truth = label_values(self.frame["y_true"], self.task)
            return ScoringInput(truth, self.frame[columns].to_numpy(np.float64))
        y_true, y_pred = (label_values(self.frame[column], self.task) for column in ("y_true", "y_pred"))
        if not columns:
            return ScoringInput(y_true, y_pred)
        known = set(columns) <= set(self.frame.columns)
        return ScoringInput(y_true, y_pred, self.frame[columns].to_numpy(np.float64) if known else None)

    def with_answers(self, answers: pd.DataFrame) -> Self:
        """Return the same units with other answers, given as `Predictions.join` takes them and known to be for the same ids."""
        rows = pd.Index(answers["id"].astype(str)).get_indexer(self.frame["id"])
        columns = {name: answers[name].to_numpy()[rows] for name in answers.columns if name != "id"}
        return replace(self, frame=self.frame.assign(**columns))

    def save(self, path: str | Path) -> Path:
        """Write the frame as Parquet; `read_predictions` reads it back."""
        return write_parquet(self.frame, path)
