"""Answers of a table joined with their references: one row per unit."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, Self

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadPredictions, first_n
from cardiobench.core.tables import write_parquet
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.refits import Refits
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
        shown = strange["y_pred"].map(repr).where(strange["y_pred"].notna(), "empty")
        rows = [f"{name} ({cell})" for name, cell in zip(strange["id"], shown, strict=True)]
        raise BadPredictions(
            f"{source}: {len(rows)} of {len(answers)} predictions are not classes of {task.name}: {first_n(rows)}. "
            f"Classes: {', '.join(task.classes)}."
            + _remedy(strange["y_pred"], task)
            + (f" Write {outside} for an answer outside of them." if outside else "")
        )


def _remedy(cells: pd.Series, task: Task) -> str:
    """Return how to name a column of probabilities that was given as answers; empty for other cells."""
    numbers = pd.to_numeric(cells, errors="coerce")
    if not task.rules.two_classes or not ((numbers >= 0) & (numbers <= 1)).all():
        return ""
    return f" If they are probabilities of {task.classes[-1]}, name the column p_{task.classes[-1]}."


@dataclass(frozen=True)
class RefitAnswers:
    """Answers of the same model fitted to other draws of its training data.

    Attributes:
        varies: Source of variation (`results.refits.Refits.varies`).
        seed: Seed of the draws, or of the first training.
        draws: Digest of what was drawn.
        columns: Column of answers -> answers of R refits, (n, R) float32 or class names; empty if nothing varies.
        ids: Ids of the n rows.
    """

    varies: str
    seed: int = 0
    draws: str = ""
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    ids: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=object))

    @property
    def count(self) -> int:
        """Number of refits; 0 if nothing varies."""
        return next((values.shape[1] for values in self.columns.values()), 0)

    @property
    def vary(self) -> bool:
        """Return whether answers differ between refits, or are the same for all rows because nothing was learned."""
        every = self.columns.values()
        differ = any(bool((values != values[:, :1]).any()) for values in every)
        return differ or not any(bool((values != values[:1]).any()) for values in every)

    def take(self, ids: pd.Series) -> Self:
        """Return the rows with these ids, in their order."""
        rows = pd.Index(self.ids).get_indexer(ids)
        return replace(self, columns={name: one[rows] for name, one in self.columns.items()}, ids=ids.to_numpy())

    def tables(self, task: Task) -> Iterator[pd.DataFrame]:
        """Yield the answers of each refit: id and the columns of answers of the task."""
        if not self.count:
            return
        # One table for all refits, because the time of small tables hardly depends on their number of rows.
        columns = {name: values.T.ravel() for name, values in self.columns.items()}
        answers = pd.DataFrame({"id": np.tile(self.ids, self.count), **columns})
        every = pd.concat([answers[["id"]], task.rules.complete_answers(answers, task)], axis=1)
        for start in range(0, len(every), max(len(self.ids), 1)):
            yield every.iloc[start : start + len(self.ids)]


def refit_columns(task: Task) -> list[str]:
    """Return the columns of answers stored for each refit: all, without classes that follow from their probabilities."""
    derived = {"y_pred"} if task.rules.answer == "labels" else set()
    return [name for name in task.rules.answer_columns(task) if name not in derived]


def stack_refits(
    tables: Sequence[pd.DataFrame], ids: pd.Series, task: Task, varies: str, seed: int, draws: str
) -> RefitAnswers:
    """Return the answers of refits as arrays, with numbers in single precision.

    Args:
        tables: Answers of each refit: id and the columns of answers.
        ids: Ids of the rows to keep.
        task: Task that is answered.
        varies: Source of variation.
        seed: Seed of the draws.
        draws: Digest of what was drawn.
    """
    places = [pd.Index(one["id"].astype(str)).get_indexer(ids) for one in tables]
    columns = {}
    for name in refit_columns(task):
        if not all(name in one for one in tables):
            continue
        stacked = np.stack([one[name].to_numpy()[rows] for one, rows in zip(tables, places, strict=True)], axis=1)
        columns[name] = stacked if stacked.dtype == object else stacked.astype(np.float32)
    return RefitAnswers(varies, seed, draws, columns, ids.to_numpy())


def stored_refits(record: Refits | None, columns: Mapping[str, np.ndarray], ids: pd.Series) -> RefitAnswers | None:
    """Return the answers of refits that are saved next to a result.

    Args:
        record: Refits of the result.
        columns: Column of answers -> answers of the refits, (n, R).
        ids: Ids of the n rows.

    Raises:
        BadPredictions: The numbers of refits differ.
    """
    if record is None:
        return None
    found = RefitAnswers(record.varies, record.seed, record.draws, columns, ids.to_numpy())
    if found.count != record.count:
        raise BadPredictions(
            f"the result has scores of {record.count} refits, but its predictions have {found.count}. Repeat the run that created it."
        )
    return found


class JoinedAnswers(Protocol):
    """Answers to a task, joined with their references in the form of its kind, which `TaskKind.scored` reads."""

    @property
    def task(self) -> Task:
        """Answered task."""
        ...

    @property
    def source(self) -> str:
        """Origin of the answers, for messages."""
        ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences for the reader of the score."""
        ...

    @property
    def out_of_fold(self) -> bool:
        """Whether the units are from all splits, each predicted by a model that was not trained on its patient."""
        ...

    @property
    def refits(self) -> RefitAnswers | None:
        """Answers of refits, with which models are compared; None if there are none."""
        ...


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
        refits: Answers of refits, with which models are compared; None if there are none, as for answers from elsewhere.
        refit_scores: Scores of the refits that were computed before (`scoring.refits.refit_scores`), because the same
            answers are compared with those of every other model.
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
    refits: RefitAnswers | None = None
    refit_scores: dict[tuple[str, str, bytes], tuple[float, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def patients(self) -> np.ndarray:
        """Patient of each row. The shape is (n,)."""
        return self.frame["patient_id"].to_numpy()

    def sample(self) -> ScoringInput:
        """Return the rows as arrays: float64 values, class codes in the task's class order, or the classes of each row."""
        return self.task.rules.sample(self.frame, self.task)

    def with_answers(self, answers: pd.DataFrame) -> Self:
        """Return the same units with other answers, in the format of `Predictions.join` and for the same ids."""
        rows = pd.Index(answers["id"].astype(str)).get_indexer(self.frame["id"])
        columns = {name: answers[name].to_numpy()[rows] for name in answers.columns if name != "id"}
        return replace(self, frame=self.frame.assign(**columns))

    def of_refits(self) -> Iterator[Self]:
        """Yield the same units with the answers of each refit; nothing without refits.

        Units without an answer of the refits, whose answers were filled in, keep theirs.
        """
        if self.refits is None:
            return
        rows = pd.Index(self.refits.ids).get_indexer(self.frame["id"])
        for answers in self.refits.tables(self.task):
            columns = {
                name: np.where(rows < 0, self.frame[name], answers[name].to_numpy()[rows])
                for name in answers.columns
                if name != "id"
            }
            yield replace(self, frame=self.frame.assign(**columns), refits=None)

    def with_floors(self, floors: Mapping[str, pd.DataFrame]) -> Self:
        """Return the same answers with additional floors, each of which answers all of these units."""
        return replace(self, floors={name: self.with_answers(answers).sample() for name, answers in floors.items()})

    def save(self, path: str | Path) -> Path:
        """Write the data frame as Parquet; `read_predictions` reads it."""
        return write_parquet(self.frame, path)
