"""Define what all cells share: identity, place, key and cached record."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

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
from cardiobench.protocols.base import BaseProtocol
from cardiobench.protocols.profile import DEFAULT
from cardiobench.results.context import ResultContext
from cardiobench.results.paths import folder_name, result_path
from cardiobench.results.predictions_file import load_cached_score
from cardiobench.results.record import Record
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner import references
from cardiobench.runner.plan import TaskPlan
from cardiobench.runner.recent import RecentData
from cardiobench.scoring.metrics import narrow_metrics
from cardiobench.tasks.task import metrics_of

KEY_DIGITS = 16
NOT_TRAINED_BY = ("code", "prompts", "resamples", "metrics")
"""Keys of facts that do not affect the weights."""
NOTHING: Mapping[str, Any] = MappingProxyType({})

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

    def check(self) -> None:
        """Refuse a task or model that the protocol does not support by raising `NotApplicable`. By default none is refused."""

    @property
    def sendable(self) -> bool:
        """Whether a worker process can compute the cell without the model's network."""
        return self.protocol.works_from_embeddings(self.model.encoder)

    @property
    def trained_here(self) -> bool:
        """Whether the cell holds what this process has trained, which is not sent to a worker."""
        return False

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


class ComputedCell(BaseCell[Result]):
    """A cell that `cardiobench.runner.compute.compute_all` computes; others are saved together with one of these."""

    @abstractmethod
    def compute(self, recent: RecentData) -> tuple[Result, Sequence[Path]]:
        """Compute and save the record.

        Args:
            recent: Recordings of the previous cell, which are read again only if this cell needs others.

        Returns:
            Record and paths of the written files.

        Raises:
            NotApplicable: The protocol does not apply to the model.
        """


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
        """Return the saved result if key, recordings and the user's statements match and its predictions exist, else None."""
        result, stated = load_cached_score(self.path, self.key, self.recordings), self.model.seen
        said = stated.get(self.dataset.spec.name)
        return None if result and said is not None and result.seen_in_pretraining is not said else result

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


def profile_fact(config: RunConfig) -> dict[str, str]:
    """Return the profile of a run for keys and stamps; empty for the default."""
    return {} if config.profile == DEFAULT else {"profile": config.profile}


def dataset_facts(dataset: OpenDataset, limit: int | None) -> dict[str, Any]:
    """Return the dataset facts stored in results."""
    masked = {"overlays": "masked"} if dataset.masked else {}
    return {**dataset.facts, **masked, "limit": limit, **dataset.coverage()}
