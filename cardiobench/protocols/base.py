"""Base classes of protocols: rules that turn the embeddings of a task's recordings into predictions, never into scores."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadPredictions, NotApplicable, first_n
from cardiobench.data.spec import Task
from cardiobench.embeddings.store import Embeddings
from cardiobench.models.base import Encoder
from cardiobench.protocols.options import validated
from cardiobench.results.cost import Cost
from cardiobench.tasks.labels import label_values

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class TaskData:
    """Recordings of a task with their labels and embeddings, row by row.

    Attributes:
        task: Task to predict.
        rows: Id, patient_id, split and the columns of the dataset; one row per recording.
        embeddings: Embeddings in the order of `rows`.
        pooling: Pooling of the encoder (`Encoder.pooling`).
        work: Folder for what a training keeps between runs, named by everything that can change its weights; None for none.
        prompts: Another prompt set than the dataset's own.
        several_vectors: Advice where a recording has one vector and a protocol needs several (`LoadedModel.several_vectors`).
        parts_of: f(id) -> parts of a recording as the model's transform makes them, (P, ...), for a protocol that trains on them; None
            for none.
    """

    task: Task
    rows: pd.DataFrame
    embeddings: Embeddings
    pooling: str
    prompts: Path | None = None
    several_vectors: str = ""
    work: Path | None = None
    parts_of: "Callable[[str], torch.Tensor] | None" = None

    @cached_property
    def features(self) -> np.ndarray:
        """One vector per recording, float64, (n, dim)."""
        return self.embeddings.pooled(self.pooling)

    @cached_property
    def labels(self) -> np.ndarray:
        """Numbers in the task's unit or class codes, (n,); of a multilabel task 0, 1 or NaN, (n, classes) (`label_values`)."""
        return label_values(self.rows[self.task.target], self.task)

    @property
    def patients(self) -> np.ndarray:
        """Patient of each row, (n,)."""
        return self.rows["patient_id"].to_numpy()

    @cached_property
    def patient_codes(self) -> np.ndarray:
        """Code of each row's patient, in the order of the patients' ids, (n,)."""
        return pd.factorize(self.rows["patient_id"], sort=True)[0]

    def with_splits(self, split: np.ndarray) -> "TaskData":
        """Return the same recordings in other splits (n,); features and labels that were computed are kept."""
        made = replace(self, rows=self.rows.assign(split=split))
        vars(made).update(
            {name: vars(self)[name] for name in ("features", "labels", "patient_codes") if name in vars(self)}
        )
        return made

    def indices(self, *splits: str) -> np.ndarray:
        """Return the positions of the rows of these splits."""
        return np.flatnonzero(self.rows["split"].isin(splits))


@dataclass(frozen=True)
class HeldOut:
    """Predictions of validation recordings by a model that was not fitted to their patients.

    Attributes:
        indices: Positions in `TaskData.rows`.
        values: Predicted numbers or class probabilities, as in `ProtocolOutput`.
    """

    indices: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class ProtocolOutput:
    """Predictions of a protocol.

    Attributes:
        indices: Positions in `TaskData.rows`.
        values: Predicted numbers (n,), or class probabilities (n, classes), which add up to 1 unless a recording can have
            several classes.
        details: Choices made during fitting (regularisation, k, prompt set); stamped into the result.
        out_of_fold: Must agree with `BaseProtocol.out_of_fold`, which declares it; protocols need not repeat it here.
        refits: Values by the same model fitted on other draws of the training patients (`refits.py`); the spread of their
            scores is added to the interval.
        repeats: Values of each of several trainings by other seeds, whose mean `values` is; their scores are in the result.
        validation: Predictions of the validation recordings of a protocol that trains, for what is chosen on them later; None
            where there are none. They take no part in the score; classes are cut by them (`cut.py`).
        inner: Predictions of train and validation recordings by folds of their patients, for a cut where validation
            patients are few; None where there are none.
        folds: Fold that holds out each of `indices`, (n,), of answers out of fold; with it the information test deals labels and
            fits the embeddings again. None deals the answers as they are, at a third of the level.
        cut: Weights by which class probabilities are multiplied before the largest is the answer, (classes,) or, of answers
            by several models, (n, classes); None for no weights.
        warnings: Sentences about the fitting that a reader of the result has to know.
        cost: Cost of an answer by a network that the protocol trained itself; None where the answer costs what the embedding does.
    """

    indices: np.ndarray
    values: np.ndarray
    details: Mapping[str, Any] = field(default_factory=dict)
    out_of_fold: bool = False
    refits: tuple[np.ndarray, ...] = ()
    repeats: tuple[np.ndarray, ...] = ()
    validation: HeldOut | None = None
    inner: HeldOut | None = None
    folds: np.ndarray | None = None
    cut: np.ndarray | None = None
    warnings: tuple[str, ...] = ()
    cost: Cost | None = None


class BaseProtocol(ABC):
    """A named rule, subclassed as a frozen dataclass whose fields are its options.

    Attributes:
        name: Unique among all protocols.
        out_of_fold: Whether it predicts the units of all splits (those of `select_rows`), each by a model that never saw
            its patient, instead of the test split.
        forms: Forms of answer that it gives (`TaskKind.answer`); tasks that ask for others are not applicable.
        gives: The same in words, after "answers".
        headline_rank: Rank among the protocols of a task where a page has room for the result of one, lowest first; None
            ranks after every number.
        keeps_training: Whether a cell has the recordings and a folder for checkpoints (`TaskData.parts_of`, `TaskData.work`).
        seeds_in_interval: Whether the interval of the score covers the spread over its repeats (`ProtocolOutput.repeats`).
        beside: Name of the protocol with whose result of the same model its results are compared; empty for none.
        reference: Name of the reference, in words, with which models of other protocols are compared where both have results;
            empty for a protocol that is no reference.
        condition: Condition of the model's network, by which results are ranked apart, such as "frozen".
        published_as: Word for it in tables of published scores (`PublishedScore.protocol`); empty where they have none.
        selecting_options: Options that only choose which variants are run, and change no result of any of them.
        from_embeddings: Whether stored embeddings and the facts of the encoder are all that it needs of a model, so that its
            cells can be computed in worker processes, on one core each.
    """

    name: ClassVar[str]
    out_of_fold: ClassVar[bool] = False
    forms: ClassVar[tuple[str, ...]] = ("number", "class", "labels")
    gives: ClassVar[str] = "with a number, a class or labels per recording"
    headline_rank: ClassVar[int | None] = None
    keeps_training: ClassVar[bool] = False
    selecting_options: ClassVar[frozenset[str]] = frozenset()
    from_embeddings: ClassVar[bool] = False
    reference: ClassVar[str] = ""
    condition: ClassVar[str] = "frozen"
    published_as: ClassVar[str] = ""
    seeds_in_interval: ClassVar[bool] = False
    beside: ClassVar[str] = ""

    @classmethod
    def from_config(cls, config: RunConfig, **options: Any) -> Self:
        """Build the protocol with the settings of a run; `options` win over them.

        Raises:
            UnknownName: there is no such option.
            CardioBenchError: an option's value is of another type or out of range.
        """
        return validated(cls, {**cls.settings(config), **options})

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return the options that the settings of a run decide; by default none."""
        return {}

    def own_models(self, tasks: Sequence[Task], models: Sequence[str]) -> tuple[str, ...]:
        """Return the models that the protocol adds to those of a run; none for a protocol that evaluates any model.

        The encoder of such a model names the protocol in `trained_by`, and the two are only run with each other.

        Args:
            tasks: Tasks of the run.
            models: Models that the settings name.
        """
        return ()

    def takes(self, trained_by: str, tasks: Sequence[Task]) -> bool:
        """Return whether the protocol is run with a model.

        Args:
            trained_by: Protocol that trains the model's network; empty for a model that is trained already.
            tasks: Tasks of the run.
        """
        return trained_by == self.name if trained_by else not self.own_models(tasks, ())

    def uses(self) -> tuple["BaseProtocol", ...]:
        """Return the protocols whose answers this one takes, by default none; their versions are part of its keys."""
        return ()

    def get_params(self) -> dict[str, Any]:
        """Return all options with their values, as stamped into results."""
        return asdict(self)  # type: ignore[call-overload]  # subclasses are dataclasses

    def params_for(self, task: Task) -> dict[str, Any]:
        """Return the options as stated in a result of a task: those of `get_params`, restricted to the applicable ones."""
        return self.get_params()

    def check(self, task: Task) -> None:
        """Refuse a task before anything is read; `NotApplicable` says why. By default other forms of answer than `forms`."""
        if task.rules.answer not in self.forms:
            raise NotApplicable(f"{task.name} asks for {task.rules.wanted(task)}, and {self.name} answers {self.gives}")


@dataclass(frozen=True)
class Workload:
    """The work of a cell, compared with others of its protocol.

    Attributes:
        kind: Cells of one kind take time in proportion to their cost.
        size: Rank of the cell's size: cells of one size have the same records, and the nearest size tells most of the time.
        cost: Work in a unit of the protocol's own.
    """

    kind: str
    size: int
    cost: float


class PredictionProtocol(BaseProtocol):
    """A protocol that predicts the test recordings of a task; `scoring/` turns its predictions into scores.

    Attributes:
        runs_in_parallel: Each variant is so much work that its cells are announced, with their time, and sent to workers in any run.
        learns: Whether it learns from the training patients, so that fewer of them are worth a score of their own.
    """

    runs_in_parallel: ClassVar[bool] = False
    learns: ClassVar[bool] = False

    def variants(self, task: Task) -> tuple[str, ...]:
        """Return the named ways to predict a task, one result each; `("",)` where there is one only."""
        return ("",)

    def result_variants(self, task: Task) -> tuple[str, ...]:
        """Return the variants that results may have: those that are predicted, and those put together from them."""
        return self.variants(task)

    def workload(self, variant: str, records: int | None = None) -> Workload | None:
        """Return the work of a cell, by which its time is estimated; None for a variant that is put together from others.

        Args:
            variant: Variant of the cell.
            records: Records of the cell; None where they are not known, for as many as there may be.
        """
        return Workload(variant, 0, 1.0)

    def check_encoder(self, encoder: Encoder, task: Task) -> None:
        """Refuse a model before its embeddings are read; `NotApplicable` says why. By default every model takes part."""

    def select_rows(self, rows: pd.DataFrame, task: Task, variant: str) -> pd.DataFrame:
        """Return the rows whose embeddings a variant needs; no other embedding is read."""
        return rows

    def floors(self, rows: pd.DataFrame, task: Task) -> "Mapping[str, pd.DataFrame]":
        """Return answers without a look at any recording, which a model has to beat beside the constant; by default none.

        Whoever checks a result computes them again, so that they may depend on the table of a dataset alone and are the same
        on any processor but for the last digits.

        Args:
            rows: Recordings of the task of all splits, readable or not.
            task: Task to answer.

        Returns:
            Name, in words -> answers to the test units in the form of `aggregate`.
        """
        return {}

    def plan_lines(self) -> list[str]:
        """Return the search space, line by line, for the printed plan."""
        return []

    @abstractmethod
    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> ProtocolOutput:
        """Predict the test rows.

        Raises:
            NotApplicable: the model cannot take part.
        """


@dataclass(frozen=True)
class Units:
    """Units of scoring of some recordings: the recordings themselves, studies or patients.

    Attributes:
        ids: Ids of the units, in the order of their first recording, shape (m,).
        of_recording: Position of each recording's unit in `ids`, (n,).
    """

    ids: np.ndarray
    of_recording: np.ndarray

    @classmethod
    def of(cls, data: TaskData, indices: np.ndarray) -> Self:
        """Return the units of the recordings at some positions."""
        codes, ids = pd.factorize(data.rows[data.task.unit_column].iloc[indices])
        return cls(ids.to_numpy(), codes)

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Average the predictions of the recordings (n,) or (n, classes) of each unit.

        Raises:
            BadPredictions: some are not finite; a mean that leaves them out would be one of other recordings.
        """
        odd = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
        if odd.any():
            where = first_n(dict.fromkeys(map(str, self.ids[self.of_recording[odd]])))
            raise BadPredictions(
                f"the predictions of {odd.sum()} of {len(odd)} recordings are not finite numbers: {where}."
            )
        if len(self.ids) == len(self.of_recording):
            return values
        return (
            pd.DataFrame(values).groupby(self.of_recording, sort=False).mean().to_numpy().reshape(-1, *values.shape[1:])
        )


class EnsembleProtocol(PredictionProtocol):
    """A protocol that trains members which know nothing of each other, and puts their answers together.

    The processes of a run share the members out; each is trained whole by one process, so that the answer is the same on any
    number of them.
    """

    @property
    @abstractmethod
    def members(self) -> int:
        """Number of members."""

    @abstractmethod
    def prepare(self, data: TaskData, encoder: Encoder, variant: str = "") -> Any:
        """Return the shared training data of all members of a variant.

        Raises:
            NotApplicable: the model cannot take part.
        """

    @abstractmethod
    def train(self, prepared: Any, member: int) -> Any:
        """Train a member; return its answers, which are sent to the main process.

        Raises:
            NotApplicable: it cannot be trained.
        """

    @abstractmethod
    def combine(self, data: TaskData, answers: Sequence[Any]) -> ProtocolOutput:
        """Put the answers of all members, in their order, together."""

    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> ProtocolOutput:
        """Predict the test rows by members that are all trained here."""
        prepared = self.prepare(data, encoder, variant)
        return self.combine(data, [self.train(prepared, member) for member in range(self.members)])


def aggregate(data: TaskData, output: ProtocolOutput) -> pd.DataFrame:
    """Average the predictions of the recordings of each unit of scoring, then decide its class.

    Returns:
        id, y_pred and, for classification, p_<class>. The class is the most probable one after the cut; of two, the
        positive one on a tie; of a multilabel task every class with a probability of at least 0.5.
    """
    task, units = data.task, Units.of(data, output.indices)
    means, cut = units.mean(output.values), output.cut
    frame = task.rules.unit_answers(means, task)
    if cut is not None:
        weighted = means * (cut if cut.ndim == 1 else units.mean(cut))
        frame["y_pred"] = task.rules.unit_answers(weighted, task)["y_pred"]
    frame.insert(0, "id", units.ids)
    return frame
