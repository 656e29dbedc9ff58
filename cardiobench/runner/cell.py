"""The cells of a run: one model under one protocol on one task or subject; each has a key, a path and one saved record."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import pandas as pd

from cardiobench import scoring
from cardiobench.core.config import RunConfig
from cardiobench.core.io import sha256_of_json
from cardiobench.core.versions import component_version
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.prompts import prompt_files
from cardiobench.data.references_file import reference_facts
from cardiobench.data.spec import Task
from cardiobench.data.task_facts import task_facts
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.metrics.load import formula_version
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.analysis import AnalysisProtocol, Perturbation
from cardiobench.protocols.base import BaseProtocol, PredictionProtocol
from cardiobench.protocols.frame import FrameProtocol
from cardiobench.protocols.profile import DEFAULT
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.context import ResultContext
from cardiobench.results.paths import folder_name, result_path
from cardiobench.results.predictions_file import load_cached_score
from cardiobench.results.record import Record
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner import references
from cardiobench.runner.condition import Condition, conditions
from cardiobench.runner.encode import FrameTaskPlan
from cardiobench.runner.plan import DatasetPlan, TaskPlan
from cardiobench.scoring.metrics import metrics_of, narrow_metrics

KEY_DIGITS = 16
NOT_TRAINED_BY = ("code", "prompts", "resamples", "metrics")
"""Facts of a record that no weight depends on."""
NOTHING: Mapping[str, Any] = MappingProxyType({})
SCORED = "scored"
"""Option of an analysis: (task, variant) of each result that was scored beside it."""

Result = TypeVar("Result", bound=Record)


@dataclass(frozen=True)
class BaseCell(ABC, Generic[Result]):
    """One model under one protocol.

    Attributes:
        model: Loaded.
        protocol: Protocol with its options.
        config: Run configuration.
        subject: A task, a dataset, or a label across datasets.
        tasks: Tasks whose recordings take part.
    """

    model: LoadedModel
    protocol: BaseProtocol
    config: RunConfig
    subject: str
    tasks: tuple[Task, ...]

    @property
    def label(self) -> str:
        """The protocol with its variant, as in file names and tables."""
        return self.protocol.name

    @abstractmethod
    def inputs(self) -> Mapping[str, Any]:
        """Return the inputs of the record besides the code, the tasks and the settings shared by all cells."""

    @property
    def stores(self) -> Sequence[EmbeddingStore]:
        """Stores that the cell reads embeddings from."""
        return ()

    @abstractmethod
    def load_cached(self) -> Result | None:
        """Return the saved record if its key matches the cell's, else None."""

    @property
    def folder(self) -> Path:
        """Folder of the model: its name, its revision and, where they are not the default, pooling, variant, precision and overlays."""
        settings = (
            self.model.revision[:12],
            self.model.setting,
            "overlays-mask" if self.config.overlays == "mask" else "",
        )
        return self.config.output_dir / folder_name(self.model.name) / "+".join(filter(None, settings))

    @property
    def path(self) -> Path:
        """`<output>/<org>__<model>/<revision>/<protocol>/<dataset>__<target>.json`."""
        return result_path(self.folder, self.label, self.subject)

    @cached_property
    def code(self) -> dict[str, str]:
        """Map each component to the version that makes the record: protocol, scoring and metrics."""
        names = {name for task in self.tasks for name in metrics_of(task)}
        return {
            "protocol": component_version(type(self.protocol)),
            "scoring": component_version(scoring),
            **{f"metric {name}": formula_version(name) for name in sorted(names)},
        }

    def provenance(self) -> dict[str, Any]:
        """Return the cell's part of the stamp: key and versions of the components."""
        return {"key": self.key, "code": self.code, "recordings": self.recordings}

    @property
    @abstractmethod
    def recordings(self) -> str:
        """Digest of the recordings on this machine; no part of the key, so that a key is the same on every machine."""

    @property
    def work(self) -> Path:
        """Folder for checkpoints of a training, named by everything that can change its weights."""
        facts = {name: value for name, value in self._facts.items() if name not in NOT_TRAINED_BY}
        facts |= {"code": self.code["protocol"], "recordings": self.recordings}
        return self.config.cache_dir / "training" / sha256_of_json(facts)[:KEY_DIGITS]

    @cached_property
    def key(self) -> str:
        """Digest of everything that can change the record."""
        return sha256_of_json(self._facts)[:KEY_DIGITS]

    @property
    def _facts(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "tasks": [task_facts(task) for task in self.tasks],
            "options": {
                name: value
                for name, value in self.protocol.get_params().items()
                if name not in self.protocol.selecting_options
            },
            "pooling": self.model.pooling,
            "prompts": [
                file.read_text("utf-8") for task in self.tasks for file in prompt_files(task, self.config.prompts)
            ],
            "limit": self.config.limit,
            "seed": self.config.seed,
            "resamples": self.config.resamples,
            **profile_fact(self.config),
            **(
                {"uses": {one.name: component_version(type(one)) for one in uses}}
                if (uses := self.protocol.uses())
                else {}
            ),
            **self.inputs(),
        }


@dataclass(frozen=True)
class TaskCell(BaseCell[ScoreResult]):
    """One model, task and protocol variant; its record is a score.

    Attributes:
        plan: The dataset, and where the model's embeddings of it are.
        variant: Variant of the protocol.
    """

    plan: TaskPlan
    variant: str

    @property
    def task(self) -> Task:
        """The task that is predicted."""
        return self.tasks[0]

    @property
    def dataset(self) -> OpenDataset:
        """The dataset of the task."""
        return self.plan.dataset

    @property
    def label(self) -> str:
        """The protocol with its variant."""
        return f"{self.protocol.name}.{self.result_variant}" if self.result_variant else self.protocol.name

    @property
    def result_variant(self) -> str:
        """The variant as the result is called."""
        return self.variant

    def inputs(self) -> Mapping[str, Any]:
        """Return dataset, embeddings or tokens, variant and metrics."""
        return {
            "dataset": self.dataset.table.digest,
            **self.plan.inputs(),
            "variant": self.result_variant,
            "metrics": self.config.metrics,
        }

    @property
    def recordings(self) -> str:
        """Digest of the recordings of the dataset."""
        return self.dataset.recordings

    def load_cached(self) -> ScoreResult | None:
        """Return the saved result if key and recordings match and its predictions are there, else None."""
        return load_cached_score(self.path, self.key, self.recordings)

    def context(self, details: Mapping[str, Any] = NOTHING) -> ResultContext:
        """Return the context of the cell's score.

        Args:
            details: Findings of the protocol, beside its options.
        """
        config, model, dataset = self.config, self.model, self.dataset
        return ResultContext(
            dataset={**dataset_facts(dataset, config.limit), **reference_facts(dataset, self.task)},
            generated=dataset.generated,
            model=model.facts,
            seen_in_pretraining=model.saw(dataset.spec.name),
            protocol=self.protocol.name,
            variant=self.result_variant,
            suite=config.suite or "",
            profile=profile_fact(config).get("profile", ""),
            options={**self.protocol.params_for(self.task), **details},
            metrics=narrow_metrics(self.task, config.metrics),
            resamples=config.resamples,
            seed=config.seed,
            warnings=(*model.warnings, *references.data_warnings(dataset, config.limit)),
        )


@dataclass(frozen=True)
class Cell(TaskCell):
    """The cell of a protocol that predicts from embeddings of recordings.

    Attributes:
        unreadable: Ids of recordings that could not be read or encoded.
    """

    protocol: PredictionProtocol
    unreadable: frozenset[str]

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Conditions of the run that apply to the task."""
        return tuple(one for one in conditions(self.config) if one.module.applies(self.task, one.value))

    @property
    def result_variant(self) -> str:
        """The variant as the result is called: that of the protocol, and the conditions."""
        return ".".join(filter(None, (self.variant, *(one.label for one in self.conditions))))

    @property
    def stores(self) -> Sequence[EmbeddingStore]:
        """The store of the dataset."""
        return (self.plan.store,)

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The recordings that take part, the unreadable ones too."""
        return references.first_patients(self.dataset.task_rows(self.task), self.config.limit)

    def inputs(self) -> Mapping[str, Any]:
        """Return dataset, embeddings, variant, unreadable recordings, and the versions of the conditions."""
        return {
            **super().inputs(),
            "unreadable": sorted(self.unreadable & set(self.rows["id"])),
            **{one.name: one.module.VERSION for one in self.conditions},
        }


@dataclass(frozen=True)
class FrameCell(TaskCell):
    """The cell of a protocol that answers labelled frames."""

    protocol: FrameProtocol
    plan: FrameTaskPlan


@dataclass(frozen=True)
class AnalysisCell(BaseCell[AnalysisResult]):
    """One model, analysis protocol and subject; its record is an analysis.

    Attributes:
        plans: Dataset -> where the model's embeddings of it are.
        perturbed: (dataset, key of the perturbation) -> where the embeddings of its perturbed test recordings are.
        unreadable: Dataset -> ids of recordings that could not be read or encoded.
    """

    protocol: AnalysisProtocol
    plans: Mapping[str, DatasetPlan]
    perturbed: Mapping[tuple[str, str], DatasetPlan]
    unreadable: Mapping[str, frozenset[str]]

    @property
    def stores(self) -> Sequence[EmbeddingStore]:
        """The stores of the subject's datasets."""
        return [self.plans[name].store for name in self.datasets]

    @property
    def datasets(self) -> dict[str, OpenDataset]:
        """Name -> dataset of the subject's tasks."""
        return {task.dataset: self.plans[task.dataset].dataset for task in self.tasks}

    def plan(self, task: Task, perturbation: Perturbation | None = None) -> DatasetPlan:
        """Return where the embeddings of a task's recordings are, as they stand or perturbed."""
        return self.perturbed[task.dataset, perturbation.key] if perturbation else self.plans[task.dataset]

    def inputs(self) -> Mapping[str, Any]:
        """Return datasets, embeddings, perturbations and unreadable recordings."""
        plans = [self.plans[task.dataset] for task in self.tasks]
        return {
            "datasets": [plan.dataset.table.digest for plan in plans],
            "embeddings": [plan.store.key for plan in plans],
            "perturbations": [perturbation.key for perturbation in self.protocol.perturbations(self.tasks)],
            "unreadable": {name: sorted(ids) for name, ids in self.unreadable.items()},
        }

    @property
    def recordings(self) -> str:
        """Digest of the recordings of all its datasets."""
        return sha256_of_json([dataset.recordings for dataset in self.datasets.values()])[:KEY_DIGITS]

    def load_cached(self) -> AnalysisResult | None:
        """Return the saved analysis if key and recordings match and the scores beside it are there, else None."""
        record = AnalysisResult.load_cached(self.path, self.key, self.recordings)
        complete = record and all(cell.load_cached() for cell in self.scores(record))
        return record if complete else None

    def score_cell(self, task: Task, variant: str) -> "AnalysisScoreCell":
        """Return the cell of predictions of this analysis that are scored."""
        return AnalysisScoreCell(
            self.model, self.protocol, self.config, task.name, (task,), self.plan(task), variant, self
        )

    def scores(self, record: AnalysisResult) -> list["AnalysisScoreCell"]:
        """Return the cells of the scores that were saved with a record."""
        tasks = {task.name: task for task in self.tasks}
        return [self.score_cell(tasks[name], variant) for name, variant in record.options.get(SCORED, ())]


@dataclass(frozen=True)
class AnalysisScoreCell(TaskCell):
    """The score of predictions of an analysis.

    Attributes:
        analysis: Analysis that made the predictions.
    """

    analysis: AnalysisCell

    def inputs(self) -> Mapping[str, Any]:
        """Return the analysis with its metrics and variant."""
        return {"analysis": self.analysis.key, "metrics": self.config.metrics, "variant": self.variant}

    @property
    def recordings(self) -> str:
        """Digest of the recordings of the analysis."""
        return self.analysis.recordings


def profile_fact(config: RunConfig) -> dict[str, str]:
    """Return the profile of a run under its name, for keys and stamps; nothing for the benchmark's own settings."""
    return {} if config.profile == DEFAULT else {"profile": config.profile}


def dataset_facts(dataset: OpenDataset, limit: int | None) -> dict[str, Any]:
    """Return the facts of a dataset that a result holds."""
    masked = {"overlays": "masked"} if dataset.masked else {}
    return {**dataset.facts, **masked, "limit": limit, **dataset.coverage()}
