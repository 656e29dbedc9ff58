"""Predict the recordings of a task from their embeddings."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cardiobench.core.conditions import Condition, join_parts
from cardiobench.core.errors import NotApplicable
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.digests import text_digest
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.base import PredictionProtocol, ProtocolOutput, TaskData
from cardiobench.protocols.cut import cut_by_validation
from cardiobench.protocols.ensemble import EnsembleProtocol
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.cells.answers import answer_recordings, save_answered
from cardiobench.runner.cells.base import ComputedCell, TaskCell
from cardiobench.runner.condition import conditions
from cardiobench.runner.recent import RecentData
from cardiobench.runner.references import first_patients

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Members:
    """Trained ensemble members of a cell.

    Attributes:
        answers: Predictions of each member, or its `NotApplicable` error.
        seconds: Total training time.
    """

    answers: Sequence[Any]
    seconds: float

    def checked(self) -> Sequence[Any]:
        """Return the predictions of all members; raises the first `NotApplicable` if there is one."""
        for answer in self.answers:
            if isinstance(answer, NotApplicable):
                raise answer
        return self.answers


@dataclass(frozen=True)
class Cell(TaskCell, ComputedCell[ScoreResult]):
    """Cell of a protocol that predicts from embeddings of recordings.

    Attributes:
        unreadable: Ids of recordings that could not be read or encoded.
        members: Trained members of an ensemble protocol; None to train them when the cell is computed.
    """

    protocol: PredictionProtocol
    unreadable: frozenset[str]
    members: Members | None = field(default=None, compare=False, repr=False)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Conditions of the run that apply to the task."""
        return tuple(one for one in conditions(self.config) if one.module.applies(self.task, one.value))

    @property
    def result_variant(self) -> str:
        """Variant name in the result: protocol variant and conditions."""
        return join_parts((self.variant, *(one.label for one in self.conditions)))

    @property
    def stores(self) -> Sequence[EmbeddingStore]:
        """Embedding store of the dataset."""
        return (self.plan.store,)

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Indices of all recordings used, including unreadable ones."""
        return first_patients(self.dataset.task_rows(self.task), self.config.limit)

    @cached_property
    def recordings(self) -> str:
        """Digest of the fingerprints of the recordings used."""
        return text_digest(*self.rows["fingerprint"])

    def inputs(self) -> Mapping[str, Any]:
        """Return dataset, embeddings, variant, unreadable recordings and condition versions."""
        return {
            **super().inputs(),
            "unreadable": sorted(self.unreadable & set(self.rows["id"])),
            **{one.name: one.module.VERSION for one in self.conditions},
        }

    @property
    def sendable(self) -> bool:
        """Whether a worker process can compute the cell without the model's network, as all long cells can."""
        return self.protocol.runs_in_parallel or super().sendable

    @property
    def trained_here(self) -> bool:
        """Whether this process has the trained members."""
        return self.members is not None

    def check(self) -> None:
        """Refuse a task or model that the protocol does not support by raising `NotApplicable`."""
        self.protocol.check(self.task)
        self.protocol.check_encoder(self.model.encoder, self.task)

    def read(self, recent: RecentData) -> TaskData:
        """Return the recordings that the protocol needs, with their embeddings."""
        rows = _numbered(self.rows[~self.rows["id"].isin(self.unreadable)] if self.unreadable else self.rows)
        rows = _numbered(self.protocol.select_rows(rows, self.task, self.variant))
        data = recent.of(self.task, rows, lambda: task_data(self, rows))
        if not self.protocol.keeps_training:
            return data
        return replace(data, work=self.work, parts_of=partial(parts_of, self.model, self.dataset))

    def compute(self, recent: RecentData) -> tuple[ScoreResult, Sequence[Path]]:
        """Predict the test recordings, score and save."""
        started, protocol, data = time.perf_counter(), self.protocol, self.read(recent)
        if self.members is not None and isinstance(protocol, EnsembleProtocol):
            started -= self.members.seconds
            output = protocol.combine(data, self.members.checked())
        else:
            output = protocol.predict(data, self.model.encoder, self.variant)
        output = cut_by_validation(data, under_conditions(self, data, output))
        floors = protocol.floors(self.rows, self.task)
        return save_answered(self, answer_recordings(self, data, output, floors), started)


def under_conditions(cell: Cell, data: TaskData, output: ProtocolOutput) -> ProtocolOutput:
    """Return predictions of a cell under the conditions of the run."""
    for condition in cell.conditions:
        output = condition.module.apply(cell, data, output, condition.value)
    return output


def task_data(cell: Cell, rows: pd.DataFrame) -> TaskData:
    """Return some recordings of a cell's dataset, numbered from 0, with their stored embeddings."""
    embeddings, model = cell.plan.store.load(rows["id"], rows["fingerprint"]), cell.model
    return TaskData(cell.task, rows, embeddings, model.pooling, cell.config.prompts, model.several_vectors)


def parts_of(model: LoadedModel, dataset: OpenDataset, name: str) -> "torch.Tensor":
    """Return the parts of a recording by id."""
    from cardiobench.embeddings.extract import prepare

    return prepare(model, dataset, int(np.flatnonzero(dataset.frame["id"].to_numpy() == name)[0]))


def _numbered(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows numbered from 0, without copying if possible, because tables can be large."""
    return rows if rows.index.equals(pd.RangeIndex(len(rows))) else rows.reset_index(drop=True)
