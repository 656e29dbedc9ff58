"""Base classes of protocols, which turn the embeddings of a task's recordings into predictions, never into scores."""

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
from cardiobench.embeddings.vectors import Embeddings
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
        work: Folder for training checkpoints, named after everything that can change the weights; None for none.
        prompts: Prompt set that replaces the dataset's own.
        several_vectors: Advice for protocols that need several vectors per recording (`LoadedModel.several_vectors`).
        parts_of: f(id) -> parts of a recording after the model's transform, (P, ...), for protocols that train on them;
            None otherwise.
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
        """One vector per recording, float64. The shape is (n, dim)."""
        return self.embeddings.pooled(self.pooling)

    @cached_property
    def labels(self) -> np.ndarray:
        """Numbers in the task's unit or class codes, (n,); of a multilabel task 0, 1 or NaN, (n, classes) (`label_values`)."""
        return label_values(self.rows[self.task.target], self.task)

    @property
    def patients(self) -> np.ndarray:
        """Patient of each row. The shape is (n,)."""
        return self.rows["patient_id"].to_numpy()

    @cached_property
    def patient_codes(self) -> np.ndarray:
        """Code of each row's patient, in the order of the patients' ids. The shape is (n,)."""
        return pd.factorize(self.rows["patient_id"], sort=True)[0]

    def with_splits(self, split: np.ndarray) -> "TaskData":
        """Return the same recordings with other splits (n,); computed features and labels are kept."""
        made = replace(self, rows=self.rows.assign(split=split))
        vars(made).update(
            {name: vars(self)[name] for name in ("features", "labels", "patient_codes") if name in vars(self)}
        )
        return made

    def indices(self, *splits: str) -> np.ndarray:
        """Return the positions (m,), ascending, of the rows in these splits."""
        return np.flatnonzero(self.rows["split"].isin(splits))


@dataclass(frozen=True)
class HeldOut:
    """Predictions of validation recordings by a model that was not fitted to their patients.

    Attributes:
        indices: Positions in `TaskData.rows`.
        values: Predicted numbers or class probabilities, as in `ProtocolOutput`.
        refits: Values of each refit or repeat (`ProtocolOutput.refits`), none of which was fitted to these patients.
    """

    indices: np.ndarray
    values: np.ndarray
    refits: tuple[np.ndarray, ...] = ()


@dataclass(frozen=True)
class ProtocolOutput:
    """Predictions of a protocol.

    Attributes:
        indices: Positions in `TaskData.rows`.
        values: Predicted numbers (n,), or class probabilities (n, classes), which add up to 1 unless a recording can have
            several classes. With one class per recording, further columns are probabilities of answers outside the
            classes; if one of them is the largest, the answer is `Other`, which is wrong for every class.
        details: Choices made during fitting (regularisation, k, prompt set); added to the result.
        out_of_fold: Must agree with `BaseProtocol.out_of_fold`; protocols need not set it.
        refits: Values of the same model fitted to other draws of the training patients (`refits.py`), with which models
            are compared.
        interval_refits: Values of the first of these refits with the choices of the model itself, such as its penalty.
            The interval of the score includes their spread, with the thresholds of `cut`.
        drawn: Indices of the training recordings of each refit, those of patients drawn twice twice (`redrawn_rows`).
        drawn_with: Seed of these draws.
        draws: Digest of these draws if the recordings of `drawn` are not here, as for a model of another dataset; empty
            to compute it from `drawn`.
        repeats: Values of several trainings with different seeds, whose mean is `values`; the result has their scores.
        seeds: Seed of each repeat.
        validation: Predictions for the validation recordings, for later choices such as the threshold (`cut.py`); None
            if there are none. They are not part of the score.
        inner: Predictions of train and validation recordings by patient folds, for choosing the threshold if there are
            few validation patients; None if there are none.
        folds: Fold that holds out each of `indices`, (n,), for out-of-fold predictions. With it the information test
            permutes labels and fits the embeddings again; None permutes the fixed answers, at a third of the level.
        refit_cuts: Weights like `cut` for each refit; empty to use those of `cut`.
        cut: Weights that multiply class probabilities before the largest is chosen, (classes,), or (n, classes) for
            predictions by several models; None for no weights.
        warnings: Sentences about the fitting that readers of the result must know.
        cost: Cost of predicting with a network that the protocol trained itself; None if it is the cost of the
            embedding.
    """

    indices: np.ndarray
    values: np.ndarray
    details: Mapping[str, Any] = field(default_factory=dict)
    out_of_fold: bool = False
    refits: tuple[np.ndarray, ...] = ()
    interval_refits: tuple[np.ndarray, ...] = ()
    drawn: tuple[np.ndarray, ...] = ()
    drawn_with: int = 0
    draws: str = ""
    repeats: tuple[np.ndarray, ...] = ()
    seeds: tuple[int, ...] = ()
    validation: HeldOut | None = None
    inner: HeldOut | None = None
    folds: np.ndarray | None = None
    cut: np.ndarray | None = None
    refit_cuts: tuple[np.ndarray, ...] = ()
    warnings: tuple[str, ...] = ()
    cost: Cost | None = None


class BaseProtocol(ABC):
    """A named procedure, subclassed as a frozen dataclass whose fields are its options.

    Attributes:
        name: Unique name.
        out_of_fold: Whether it predicts the units of all splits (those of `select_rows`), each by a model that was not
            trained on its patient, instead of the test split.
        forms: Supported forms of answer (`TaskKind.answer`); tasks with other forms are not applicable.
        gives: Description of the supported forms, for messages.
        headline_rank: Rank among protocols when a page shows only one result of a task, lowest first; None comes last.
        keeps_training: Whether cells get the recordings and a checkpoint folder (`TaskData.parts_of`, `TaskData.work`).
        seeds_in_interval: Whether the interval of the score includes the spread over repeats
            (`ProtocolOutput.repeats`).
        beside: Name of the protocol whose result for the same model is the comparison; empty for none.
        reference: Description as a reference that models of other protocols are compared with; empty if it is not a
            reference.
        condition: Condition of the model's network, such as "frozen"; results are ranked within it.
        published_as: Name in tables of published scores (`PublishedScore.protocol`); empty if it does not occur there.
        selecting_options: Options that change no result, such as those that only select the variants to run.
        formulas: Metrics that it computes besides those of its tasks; it applies to nothing if one of them is not here.
        from_embeddings: Whether it needs only stored embeddings, facts of the encoder and the vectors of its `texts`, so
            that cells can run in worker processes, one core each.
    """

    name: ClassVar[str]
    out_of_fold: ClassVar[bool] = False
    forms: ClassVar[tuple[str, ...]] = ("number", "class", "labels")
    gives: ClassVar[str] = "a number, a class or labels per recording"
    headline_rank: ClassVar[int | None] = None
    keeps_training: ClassVar[bool] = False
    selecting_options: ClassVar[frozenset[str]] = frozenset()
    formulas: ClassVar[tuple[str, ...]] = ()
    from_embeddings: ClassVar[bool] = False
    reference: ClassVar[str] = ""
    condition: ClassVar[str] = "frozen"
    published_as: ClassVar[str] = ""
    seeds_in_interval: ClassVar[bool] = False
    beside: ClassVar[str] = ""

    def works_from_embeddings(self, encoder: Encoder) -> bool:
        """Return whether cells of this model can run in worker processes; by default `from_embeddings` for any model.

        Override it in a protocol that calls further methods of some encoders.
        """
        return self.from_embeddings

    def texts(self, tasks: Sequence[Task], prompts: Path | None) -> list[list[str]]:
        """Return the texts for the model's text tower, one list per call; by default none.

        Args:
            tasks: Tasks of a cell.
            prompts: Prompt set in place of the datasets' own.

        Raises:
            NotApplicable: There are no prompts for a task.
        """
        return []

    @classmethod
    def from_config(cls, config: RunConfig, **options: Any) -> Self:
        """Build the protocol with the settings of a run; `options` take precedence.

        Raises:
            UnknownName: There is no such option.
            CardioBenchError: The value of an option has the wrong type or is out of range.
        """
        return validated(cls, {**cls.settings(config), **options})

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return the options that the settings of a run decide; by default none."""
        return {}

    def own_models(self, tasks: Sequence[Task], models: Sequence[str]) -> tuple[str, ...]:
        """Return models that the protocol adds to a run; none for protocols that evaluate any model.

        The encoder of such a model names the protocol in `trained_by`, and neither is run without the other.

        Args:
            tasks: Tasks of the run.
            models: Models named in the settings.
        """
        return ()

    def takes(self, trained_by: str, tasks: Sequence[Task]) -> bool:
        """Return whether the protocol is run with a model.

        Args:
            trained_by: Protocol that trains the model's network; empty for a pretrained model.
            tasks: Tasks of the run.
        """
        return trained_by == self.name if trained_by else not self.own_models(tasks, ())

    def uses(self) -> tuple["BaseProtocol", ...]:
        """Return the protocols whose predictions this one uses, by default none; its keys include their versions."""
        return ()

    def get_params(self) -> dict[str, Any]:
        """Return all options with their values, as stamped into results."""
        return asdict(self)  # type: ignore[call-overload]  # subclasses are dataclasses

    def params_for(self, task: Task) -> dict[str, Any]:
        """Return the options shown in a result of a task: the applicable ones of `get_params`."""
        return self.get_params()

    def check(self, task: Task) -> None:
        """Refuse an unsupported task before anything is read, by raising `NotApplicable`. By default this checks `forms`."""
        if task.rules.answer not in self.forms:
            raise NotApplicable(
                f"{task.name} requires {task.rules.wanted(task)}, and {self.name} predicts {self.gives}"
            )


@dataclass(frozen=True)
class Workload:
    """Amount of work of a cell, relative to other cells of its protocol.

    Attributes:
        kind: Group of cells whose time is proportional to their cost.
        size: Rank of the cell's size; cells of the same size have equally many records, and estimates use the nearest
            size.
        cost: Work in an arbitrary unit of the protocol.
    """

    kind: str
    size: int
    cost: float


class PredictionProtocol(BaseProtocol):
    """A protocol that predicts the test recordings of a task; `scoring/` turns its predictions into scores.

    Attributes:
        runs_in_parallel: Whether cells are long enough to be announced, with their time, and sent to workers in every
            run.
        learns: Whether it learns from the training patients, so that learning curves make sense.
    """

    runs_in_parallel: ClassVar[bool] = False
    learns: ClassVar[bool] = False

    def variants(self, task: Task) -> tuple[str, ...]:
        """Return the variants of a prediction for a task, one result each; `("",)` if there is only one."""
        return ("",)

    def result_variants(self, task: Task) -> tuple[str, ...]:
        """Return all variants of results: the predicted ones and those combined from them."""
        return self.variants(task)

    def workload(self, variant: str, records: int | None = None) -> Workload | None:
        """Return the amount of work of a cell, to estimate its time; None for a variant combined from others.

        Args:
            variant: Variant of the cell.
            records: Number of records of the cell; None uses the maximum.
        """
        return Workload(variant, 0, 1.0)

    def check_encoder(self, encoder: Encoder, task: Task) -> None:
        """Refuse an unsupported model before its embeddings are read, by raising `NotApplicable`. By default every model is supported."""

    def reads_training(self, variant: str) -> bool:
        """Return whether the answer to a recording depends on training recordings, as for all but prompts and a model's own heads."""
        return True

    def without_refits(self) -> Self:
        """Return the protocol without refits, for predictions that are not compared between models; by default itself."""
        return self

    def select_rows(self, rows: pd.DataFrame, task: Task, variant: str) -> pd.DataFrame:
        """Return the rows whose embeddings a variant needs; no other embedding is read."""
        return rows

    def floors(self, rows: pd.DataFrame, task: Task) -> "Mapping[str, pd.DataFrame]":
        """Return answers that use no recording, which raise the floor if they are better than the constant; by default none.

        Verification computes them again, so they may depend only on the table of a dataset, and must agree on all
        processors up to the last digits.

        Args:
            rows: Recordings of the task in all splits, readable or not.
            task: Task to answer.

        Returns:
            Name, in words -> answers to the test units in the form of `aggregate`.
        """
        return {}

    def plan_lines(self) -> list[str]:
        """Return lines that describe the search space, for the printed plan."""
        return []

    @abstractmethod
    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> ProtocolOutput:
        """Predict the test rows.

        Raises:
            NotApplicable: The protocol does not apply to the model.
        """


@dataclass(frozen=True)
class Units:
    """Units of scoring of some recordings: recordings, studies or patients.

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
            BadPredictions: Some predictions are not finite; a mean without them would describe other recordings.
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


def aggregate(data: TaskData, output: ProtocolOutput) -> pd.DataFrame:
    """Average the predictions of the recordings of each unit of scoring, then decide its class.

    Returns:
        id, y_pred and, for classification, p_<class>, and p_Other if there are probabilities outside the classes. The
        class is the most probable one after weighting by the cut; of
        two, the positive one on a tie; for a multilabel task, every class with a probability of at least 0.5.
    """
    task, units = data.task, Units.of(data, output.indices)
    means, cut = units.mean(output.values), output.cut
    frame = task.rules.unit_answers(means, task)
    if cut is not None:
        weighted = means * (cut if cut.ndim == 1 else units.mean(cut))
        frame["y_pred"] = task.rules.unit_answers(weighted, task)["y_pred"]
    frame.insert(0, "id", units.ids)
    return frame
