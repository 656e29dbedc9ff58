"""One cell of the table: a model's embeddings, a protocol, a task; predictions, score and files come out."""

import hashlib
import json
import time
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from cardiobench.core import resources
from cardiobench.core.config import RunConfig
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.prompts import prompt_files
from cardiobench.data.spec import Task
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.base import PredictionProtocol, TaskData, aggregate
from cardiobench.results.paths import folder_name
from cardiobench.results.predictions_file import load_cached_score, save_scored
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.plan import DatasetPlan, first_patients
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score


@dataclass(frozen=True)
class Cell:
    """One model, task and protocol variant.

    Attributes:
        model: the model.
        plan: the dataset, and where the model's embeddings of it are.
        task: the question.
        answerer: the protocol.
        variant: of the protocol.
        unread: ids of recordings that could not be read or encoded.
        config: of the run.
    """

    model: LoadedModel
    plan: DatasetPlan
    task: Task
    protocol: PredictionProtocol
    variant: str
    unread: frozenset[str]
    config: RunConfig

    @property
    def source(self) -> OpenDataset:
        """The dataset."""
        return self.plan.source

    @property
    def label(self) -> str:
        """The protocol with its variant, as in file names and tables."""
        return f"{self.protocol.name}.{self.variant}" if self.variant else self.protocol.name

    @property
    def path(self) -> Path:
        """`<output>/<org>__<model>/<revision>/<protocol>/<dataset>__<target>.json`."""
        return model_folder(self.config, self.model) / self.label / f"{self.task.name.replace('/', '__')}.json"

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The recordings that take part, the unreadable ones too."""
        return first_patients(self.source.task_rows(self.task), self.config.limit)

    @cached_property
    def key(self) -> str:
        """Digest of everything that can change the result."""
        facts = {
            "code": code_digest(),
            "dataset": self.source.table.digest,
            "task": repr(self.task),
            "options": self.protocol.get_params(),
            "embeddings": self.plan.store.key,
            "pooling": self.model.pooling,
            "prompts": prompt_texts(self.task, self.config),
            "unread": sorted(self.unread & set(self.rows["id"])),
            "limit": self.config.limit,
            "seed": self.config.seed,
            "resamples": self.config.resamples,
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def model_folder(config: RunConfig, model: LoadedModel) -> Path:
    """Where a model's files go: its name, its revision and, where they are not its default ones, pooling and variant."""
    setting = model.setting
    part = f"{model.revision[:12]}+{setting}" if setting else model.revision[:12]
    return config.output_dir / folder_name(model.name) / part


def prompt_texts(task: Task, config: RunConfig) -> list[str]:
    """The prompt files of a task as they stand."""
    return [file.read_text(encoding="utf-8") for file in prompt_files(task, config.prompts)]


@cache
def code_digest() -> str:
    """Digest of the package's own code, datasets and metrics: a result made by other code is made again."""
    folders = [resources.PACKAGE, resources.folder("hf_metrics"), resources.folder("hf_datasets")]
    files = sorted(path for folder in folders for path in folder.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def load_cached(cell: Cell) -> ScoreResult | None:
    """The result that is there already, if it was made from the very same things."""
    return load_cached_score(cell.path, cell.key)


def evaluate_cell(cell: Cell) -> tuple[ScoreResult, list[Path]]:
    """Predict, score, save; returns the result and its files. `NotApplicable` where the model cannot take part."""
    started = time.perf_counter()
    rows = cell.rows[~cell.rows["id"].isin(cell.unread)].reset_index(drop=True)
    rows = cell.protocol.select_rows(rows, cell.task, cell.variant).reset_index(drop=True)
    embeddings = cell.plan.store.load(rows["id"], rows["fingerprint"])
    data = TaskData(cell.task, rows, embeddings, cell.model.pooling, cell.config.prompts)
    output = cell.protocol.predict(data, cell.model.encoder, cell.variant)
    predictions, references = join_references(cell, aggregate(data, output), output.out_of_fold)
    result = score(
        predictions,
        references,
        resamples=cell.config.resamples,
        seed=cell.config.seed,
        protocol=cell.protocol.name,
        variant=cell.variant,
        options={**cell.protocol.get_params(), **output.details},
        dataset=dataset_facts(cell),
        model=model_facts(cell.model),
        seen_in_pretraining=seen_in_pretraining(cell.model.name, cell.source.spec.name),
    )
    made_by = {"key": cell.key, "embeddings": cell.plan.store.key, "code": code_digest(), "torch": version("torch")}
    made_by["device"] = ", ".join(embeddings.devices) or "unknown"
    made_by["seconds"] = round(time.perf_counter() - started, 3)
    result = replace(result, stamp={**result.stamp, **made_by})
    return save_scored(result, predictions.frame, cell.path)


def first_answers(source: OpenDataset, task: Task, config: RunConfig) -> pd.DataFrame:
    """The references of a task, of the first patients only where the run is limited."""
    return first_patients(source.references(task), config.limit)


def join_references(cell: Cell, answers: pd.DataFrame, out_of_fold: bool = False) -> tuple[Predictions, pd.DataFrame]:
    """The answers joined with the references, and the references; what could not be read lowers the coverage.

    Out-of-fold answers are scored on the very units that they are about, whatever their split.
    """
    references = first_answers(cell.source, cell.task, cell.config)
    if out_of_fold:
        references = references[references["id"].isin(answers["id"])].assign(split="test")
    joined = Predictions.join(references, answers, cell.task, source=cell.model.name, allow_missing=True)
    partial = cell.config.limit or out_of_fold
    expected = joined.expected if partial else cell.source.expected(cell.task, references)
    warnings = (*joined.warnings, *cell.model.warnings, *data_warnings(cell))
    return replace(joined, expected=expected, warnings=warnings), references


def data_warnings(cell: Cell) -> list[str]:
    """What is wrong with the data itself."""
    table, limit = cell.source.table, cell.config.limit
    sentences = []
    if table.twin:
        sentences.append("synthetic twin: generated recordings, the score says nothing about patients")
    if table.missing:
        sentences.append(f"{len(table.missing)} files of the release are missing here")
    if table.absent:
        parts = ", ".join(f"{count} {split}" for split, count in table.absent.items())
        sentences.append(f"this copy lists fewer rows than the release (absent: {parts})")
    if limit:
        sentences.append(f"only the first {limit} patients of each split were used")
    return sentences


def dataset_facts(cell: Cell) -> dict:
    """The dataset, for the result."""
    spec, table = cell.source.spec, cell.source.table
    facts = {"name": spec.name, "version": spec.version, "digest": table.digest, "twin": table.twin}
    return {**facts, "limit": cell.config.limit, **cell.source.coverage()}


def model_facts(model: LoadedModel) -> dict:
    """The model, for the result."""
    return {
        "name": model.name,
        "revision": model.revision,
        "loaded_by": model.loaded_by,
        "pooling": model.pooling,
        "token_pooling": model.token_pooling,
        "preprocessing": dict(model.preprocessing),
    }


def seen_in_pretraining(model: str, dataset: str) -> bool | None:
    """Whether the model's card says that it saw the dataset; None for a model without a card."""
    from cardiobench.models.cards import card, list_models

    return dataset in card(model).seen if model in list_models() else None
