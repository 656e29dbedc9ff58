"""Answers of a table joined with their references: one row per unit."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadPredictions, first_n
from cardiobench.core.tables import write_parquet
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.stats.information import Information
from cardiobench.tasks.task import Task

OTHER = "Other"
"""Answer outside the classes of a task, unless a class has this name. It is wrong for every class."""
OTHER_COLUMN = f"p_{OTHER}"
"""Column of the probability outside the classes; optional."""
MOST_OUTSIDE = 0.05
"""Largest share of answers outside the classes with which numbers that need probabilities are defined."""


def probability_columns(task: Task) -> list[str]:
    """Return the names of the probability columns in the task's class order."""
    return [f"p_{name}" for name in task.classes]


def split_columns(answers: pd.DataFrame, task: Task) -> tuple[list[str], list[str]]:
    """Return the probability columns that a table of answers has, and the missing ones."""
    columns = probability_columns(task)
    return [name for name in columns if name in answers], [name for name in columns if name not in answers]


def given_probabilities(answers: pd.DataFrame, task: Task, source: str) -> list[str]:
    """Return the probability columns of answers: those of all classes, or none.

    Raises:
        BadPredictions: Some classes lack a probability column.
    """
    given, absent = split_columns(answers, task)
    if given and absent:
        raise BadPredictions(
            f"{source} has probabilities for {', '.join(given)} only; {task.name} has {', '.join(probability_columns(task))}."
        )
    return given


def check_classes(answers: pd.DataFrame, task: Task, source: str) -> None:
    """Refuse cells of `y_pred` that do not name classes; raises `BadPredictions`."""
    if "y_pred" not in answers:
        return
    codes, cells = pd.factorize(
        answers["y_pred"], use_na_sentinel=False
    )  # There are few distinct values, however many rows there are.
    asked = replace(task, partially_labelled=False)  # A prediction states all classes, so none can be unmeasured.
    outside = task.rules.outside_answer(task)
    odd = [cell != outside and bool(task.rules.strange_labels([cell], asked)) for cell in cells]
    strange = answers[np.array(odd, dtype=bool)[codes]]
    if len(strange):
        rows = [f"{name} ({cell!r})" for name, cell in zip(strange["id"], strange["y_pred"], strict=True)]
        raise BadPredictions(
            f"{source}: {len(rows)} of {len(answers)} predictions are not classes of {task.name}: {first_n(rows)}. "
            f"Classes: {', '.join(task.classes)}."
            + (f" Write {outside} for an answer outside of them." if outside else "")
        )


@dataclass(frozen=True)
class TableAnswers:
    """Answers to a task, joined with their references.

    Attributes:
        task: Answered task.
        frame: One row per unit: id, patient_id, y_true, y_pred, `p_<class>` if known, group columns.
        expected: Number of units of the split in the complete release, which is larger than the number of rows if
            answers are missing; None if unknown.
        source: Origin of the answers, for messages.
        warnings: Sentences for the reader of the score.
        missing: Id, patient_id and y_true of the units without an answer; None if unknown.
        out_of_fold: Whether the units are from all splits, each predicted by a model that was not trained on its
            patient.
        information: Result of an information test that needs more than these answers, such as refits; None to permute
            these answers.
        floors: Mapping from name to answers for the same rows that use no recording.
    """

    task: Task
    frame: pd.DataFrame
    expected: int | None
    source: str = "predictions"
    warnings: tuple[str, ...] = ()
    missing: pd.DataFrame | None = None
    out_of_fold: bool = False
    information: Information | None = None
    floors: Mapping[str, ScoringInput] = field(default_factory=dict)

    @property
    def patients(self) -> np.ndarray:
        """Patient of each row, (n,)."""
        return self.frame["patient_id"].to_numpy()

    def sample(self) -> ScoringInput:
        """Return the rows as arrays: float64 values, class codes in the task's class order, or the classes of each row."""
        return self.task.rules.sample(self.frame, self.task)

    def with_answers(self, answers: pd.DataFrame) -> Self:
        """Return the same units with other answers, in the format of `Predictions.join` and for the same ids."""
        rows = pd.Index(answers["id"].astype(str)).get_indexer(self.frame["id"])
        columns = {name: answers[name].to_numpy()[rows] for name in answers.columns if name != "id"}
        return replace(self, frame=self.frame.assign(**columns))

    def with_floors(self, floors: Mapping[str, pd.DataFrame]) -> Self:
        """Return the same answers with additional floors, each of which answers all of these units."""
        return replace(self, floors={name: self.with_answers(answers).sample() for name, answers in floors.items()})

    def save(self, path: str | Path) -> Path:
        """Write the data frame as Parquet; `read_predictions` reads it."""
        return write_parquet(self.frame, path)
