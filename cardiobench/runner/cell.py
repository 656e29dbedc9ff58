"""Define the cells of a run: one model under one protocol on one task or subject, with one saved record."""

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
from cardiobench.data.digests import text_digest
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
from cardiobench.scoring.metrics import narrow_metrics
from cardiobench.tasks.task import metrics_of

KEY_DIGITS = 16
NOT_TRAINED_BY = ("code", "prompts", "resamples", "metrics")
"""Keys of facts that do not affect the weights."""
NOTHING: Mapping[str, Any] = MappingProxyType({})
SCORED = "scored"
"""Key of the option that lists (task, variant) of each result scored with an analysis."""

Result = TypeVar("Result", bound=Record)


@dataclass(frozen=True)
class BaseCell(ABC, Generic[Result]):
    """One model under one protocol on one subject.

    Attributes:
        model: Loaded model.
        protocol: Protocol with its options.
        config: Run configuration.
        subject: Task, dataset, or label across datasets.
        tasks: Tasks whose recordings are used.
    """

    model: LoadedModel
    protocol: BaseProtocol
    config: RunConfig
    subject: str
    tasks: tuple[Task, ...]

    @property
    def label(self) -> str:
        """Protocol and variant as in file names and tables."""
        return self.protocol.name

    @abstractmethod
    def inputs(self) -> Mapping[str, Any]:
        """Return the cell's specific inputs, in addition to code, tasks and common settings."""

    @property
    def stores(self) -> Sequence[EmbeddingStore]:
        """Stores from which the cell reads embeddings."""
        return ()

    @abstractmethod
    def load_cached(self) -> Result | None:
        """Return the saved record if its key matches, else None."""

    @property
    def folder(self) -> Path:
        """Folder of the model with its name, revision and any non-default pooling, variant, precision and overlays."""
        settings = (
            self.model.revision[:12],
            self.model.setting,
            "overlays-mask" if self.config.overlays == "mask" else "",
        )
        return self.config.output_dir / folder_name(self.model.name) / "+".join(filter(None, settings))

    @property
    def path(self) -> Path:
        """Path `<output>/<org>__<model>/<revision>/<protocol>/<dataset>__<target>.json`."""
        return result_path(self.folder, self.label, self.subject)

    @cached_property
    def code(self) -> dict[str, str]:
        """Map each component behind the record (protocol, scoring and metrics) to its version."""
        names = {name for task in self.tasks for name in metrics_of(task)}
        return {
            "protocol": component_version(type(self.protocol)),
            "scoring": component_version(scoring),
            **{f"metric {name}": formula_version(name) for name in sorted(names)},
        }

    def provenance(self) -> dict[str, Any]:
        """Return key and component versions for the stamp."""
        return {"key": self.key, "code": self.code, "recordings": self.recordings}

    @property
    @abstractmethod
    def recordings(self) -> str:
        """Digest of the recordings used, not part of the key, so that keys do not depend on the machine."""

    @property
    def work(self) -> Path:
        """Folder for training checkpoints, named by all settings that affect the weights."""
        facts = {name: value for name, value in self._facts.items() if name not in NOT_TRAINED_BY}
        facts |= {"code": self.code["protocol"], "recordings": self.recordings}
        return self.config.cache_dir / "training" / sha256_of_json(facts)[:KEY_DIGITS]

    @cached_property
    def key(self) -> str:
        """Digest of all inputs that affect the record."""
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
    """One model, task and protocol variant, with a score as record.

    Attributes:
        plan: Dataset and location of the model's embeddings.
        variant: Variant of the protocol.
    """

    plan: TaskPlan
    variant: str

    @property
    def task(self) -> Task:
        """Predicted task."""
        return self.tasks[0]

    @property
    def dataset(self) -> OpenDataset:
        """Dataset of the task."""
        return self.plan.dataset

    @property
    def label(self) -> str:
        """Protocol and variant."""
        return f"{self.protocol.name}.{self.result_variant}" if self.result_variant else self.protocol.name

    @property
    def result_variant(self) -> str:
        """Variant name in the result."""
        return self.variant

    def inputs(self) -> Mapping[str, Any]:
        """Return dataset, embeddings or tokens, variant and metrics."""
        return {
            "dataset": self.dataset.table.digest,
            **self.plan.inputs(),
            "variant": self.result_variant,
            "metrics": self.config.metrics,
        }

    def load_cached(self) -> ScoreResult | None:
        """Return the saved result if key and recordings match and its predictions exist, else None."""
        return load_cached_score(self.path, self.key, self.recordings)

    def context(self, details: Mapping[str, Any] = NOTHING) -> ResultContext:
        """Return the context for scoring the cell.

        Args:
            details: Details from the protocol, in addition to its options.
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
    """Cell of a protocol that predicts from embeddings of recordings.

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
        """Variant name in the result: protocol variant and conditions."""
        return ".".join(filter(None, (self.variant, *(one.label for one in self.conditions))))

    @property
    def stores(self) -> Sequence[EmbeddingStore]:
        """Embedding store of the dataset."""
        return (self.plan.store,)

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Indices of all recordings used, including unreadable ones."""
        return references.first_patients(self.dataset.task_rows(self.task), self.config.limit)

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


@dataclass(frozen=True)
class FrameCell(TaskCell):
    """Cell of a protocol that predicts labelled frames."""

    protocol: FrameProtocol
    plan: FrameTaskPlan

    @property
    def recordings(self) -> str:
        """Digest of the fingerprints of the recordings with labelled frames."""
        return text_digest(*self.plan.fingerprints)


@dataclass(frozen=True)
class AnalysisCell(BaseCell[AnalysisResult]):
    """One model, analysis protocol and subject, with an analysis as record.

    Attributes:
        plans: Mapping from dataset to plan with the model's embeddings.
        perturbed: Mapping from (dataset, perturbation key) to plan with embeddings of perturbed test recordings.
        unreadable: Mapping from dataset to ids of recordings that could not be read or encoded.
    """

    protocol: AnalysisProtocol
    plans: Mapping[str, DatasetPlan]
    perturbed: Mapping[tuple[str, str], DatasetPlan]
    unreadable: Mapping[str, frozenset[str]]

    @property
    def stores(self) -> Sequence[EmbeddingStore]:
        """Embedding stores of the subject's datasets."""
        return [self.plans[name].store for name in self.datasets]

    @property
    def datasets(self) -> dict[str, OpenDataset]:
        """Mapping from name to dataset of the subject's tasks."""
        return {task.dataset: self.plans[task.dataset].dataset for task in self.tasks}

    def plan(self, task: Task, perturbation: Perturbation | None = None) -> DatasetPlan:
        """Return the plan with embeddings of a task's recordings, unchanged or perturbed."""
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

    @cached_property
    def recordings(self) -> str:
        """Digest of the fingerprints of the recordings of all tasks."""
        rows = (self.plans[task.dataset].dataset.task_rows(task) for task in self.tasks)
        limited = (references.first_patients(one, self.config.limit) for one in rows)
        return text_digest(*(text_digest(*one["fingerprint"]) for one in limited))

    def load_cached(self) -> AnalysisResult | None:
        """Return the saved analysis if key and recordings match and its scores exist, else None."""
        record = AnalysisResult.load_cached(self.path, self.key, self.recordings)
        complete = record and all(cell.load_cached() for cell in self.scores(record))
        return record if complete else None

    def score_cell(self, task: Task, variant: str) -> "AnalysisScoreCell":
        """Return the cell that scores predictions of this analysis."""
        return AnalysisScoreCell(
            self.model, self.protocol, self.config, task.name, (task,), self.plan(task), variant, self
        )

    def scores(self, record: AnalysisResult) -> list["AnalysisScoreCell"]:
        """Return the cells of scores saved with an analysis."""
        tasks = {task.name: task for task in self.tasks}
        return [self.score_cell(tasks[name], variant) for name, variant in record.options.get(SCORED, ())]


@dataclass(frozen=True)
class AnalysisScoreCell(TaskCell):
    """Score of predictions from an analysis.

    Attributes:
        analysis: Analysis that made the predictions.
    """

    analysis: AnalysisCell

    def inputs(self) -> Mapping[str, Any]:
        """Return the inputs of the analysis with metrics and variant."""
        return {"analysis": self.analysis.key, "metrics": self.config.metrics, "variant": self.variant}

    @property
    def recordings(self) -> str:
        """Digest of the analysis's recordings."""
        return self.analysis.recordings


def profile_fact(config: RunConfig) -> dict[str, str]:
    """Return the profile of a run for keys and stamps; empty for the default."""
    return {} if config.profile == DEFAULT else {"profile": config.profile}


def dataset_facts(dataset: OpenDataset, limit: int | None) -> dict[str, Any]:
    """Return the dataset facts stored in results."""
    masked = {"overlays": "masked"} if dataset.masked else {}
    return {**dataset.facts, **masked, "limit": limit, **dataset.coverage()}
