"""Analyze a model from its embeddings."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from cardiobench.core.io import sha256_of_json
from cardiobench.core.libraries import as_text, library_warnings, merged
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.digests import text_digest
from cardiobench.data.spec import Task
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.analysis import Analysis, AnalysisOutput, AnalysisProtocol, Perturbation, collapse_warnings
from cardiobench.protocols.base import TaskData
from cardiobench.report.plots import save_figures
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.context import PATIENT_IS_RECORD
from cardiobench.results.paths import folder_name, result_path
from cardiobench.results.provenance import stamp
from cardiobench.runner.cells.answers import answer_recordings, save_answered
from cardiobench.runner.cells.base import KEY_DIGITS, ComputedCell, TaskCell, profile_fact
from cardiobench.runner.cells.recordings import parts_of
from cardiobench.runner.plan import DatasetPlan
from cardiobench.runner.recent import RecentData
from cardiobench.runner.references import first_patients, limited_references

SCORED = "scored"
"""Key of the option that lists (task, variant) of each result scored with an analysis."""


@dataclass(frozen=True)
class AnalysisCell(ComputedCell[AnalysisResult]):
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
        limited = (first_patients(one, self.config.limit) for one in rows)
        return text_digest(*(text_digest(*one["fingerprint"]) for one in limited))

    def load_cached(self) -> AnalysisResult | None:
        """Return the saved analysis if key, recordings and the user's statements match and its scores exist, else None."""
        record = AnalysisResult.load_cached(self.path, self.key, self.recordings)
        stated = {name: said for name, said in self.model.seen.items() if said is not None}
        if record is None or any(stated.get(name, saw) is not saw for name, saw in record.seen_in_pretraining.items()):
            return None
        return record if all(cell.load_cached() for cell in self.scores(record)) else None

    def compute(self, recent: RecentData) -> tuple[AnalysisResult, Sequence[Path]]:
        """Run the analysis, score its predictions, and save results and figures."""
        started, analysis = time.perf_counter(), open_analysis(self)
        output = self.protocol.analyze(analysis, self.model.encoder)
        output = replace(output, warnings=(*collapse_warnings(analysis), *output.warnings))
        written: list[Path] = []
        for one in output.predictions:
            scored = self.score_cell(one.task, one.variant)
            answered = answer_recordings(scored, analysis.data(one.task), one.output)
            written += save_answered(scored, answered, started)[1]
        names = [(one.task.name, one.variant) for one in output.predictions]
        if names:
            output = replace(output, options={**output.options, SCORED: names})
        result, files = _save(output, [self], self.path, self.key)
        return result, [*files, *written]

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
    """Score of predictions from an analysis, which saves it with its own record.

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


def save_comparison(output: AnalysisOutput, cells: Sequence[AnalysisCell]) -> tuple[AnalysisResult, list[Path]]:
    """Save the results of an analysis across models next to the model folders.

    Returns:
        Result and paths of the written files.
    """
    first = cells[0]
    names = "+".join(sorted(_folder_of(cell.model) for cell in cells))
    digest = hashlib.sha256(names.encode()).hexdigest()[:12]
    path = result_path(first.config.output_dir / "across" / digest, first.label, first.subject)
    return _save(output, cells, path, sha256_of_json(sorted(cell.key for cell in cells))[:KEY_DIGITS])


def _folder_of(model: LoadedModel) -> str:
    return f"{folder_name(model.name)}{f'@{model.revision}' if model.local else ''}"


def open_analysis(cell: AnalysisCell) -> Analysis:
    """Return the data of a cell for the protocol: embeddings, labels and references, read on demand."""

    def open_task(task: Task, perturbation: Perturbation | None) -> TaskData:
        plan = cell.plan(task, perturbation)
        rows = first_patients(plan.dataset.task_rows(task), cell.config.limit)
        rows = rows if perturbation is None else perturbation.rows(rows)
        rows = rows[~rows["id"].isin(cell.unreadable.get(task.dataset, frozenset()))].reset_index(drop=True)
        embeddings = plan.store.load(rows["id"], rows["fingerprint"])
        model = cell.model
        data = TaskData(task, rows, embeddings, model.pooling, cell.config.prompts, model.several_vectors)
        if not cell.protocol.keeps_training:
            return data
        return replace(data, work=cell.work, parts_of=partial(parts_of, model, plan.dataset))

    return Analysis(
        cell.subject,
        cell.tasks,
        cell.model.facts,
        cell.config.seed,
        cell.config.resamples,
        open_task,
        lambda task: limited_references(cell.plan(task).dataset, task, cell.config.limit),
    )


def _save(
    output: AnalysisOutput, cells: Sequence[AnalysisCell], path: Path, key: str
) -> tuple[AnalysisResult, list[Path]]:
    first, libraries = cells[0], _libraries(cells)
    suite = {"suite": first.config.suite} if first.config.suite else {}
    facts = {**suite, **profile_fact(first.config), **first.provenance(), "key": key, "libraries": as_text(libraries)}
    result = AnalysisResult(
        protocol=first.protocol.name,
        subject=first.subject,
        tasks=tuple(task.name for task in first.tasks),
        values=output.values,
        tables=output.tables,
        options={**first.protocol.get_params(), **output.options},
        models=tuple(cell.model.facts for cell in cells),
        datasets=tuple(_dataset_facts(first)),
        generated=any(dataset.generated for dataset in first.datasets.values()),
        seen_in_pretraining={name: first.model.saw(name) for name in first.datasets},
        warnings=(*output.warnings, *_warnings(cells), *library_warnings(libraries)),
        stamp=stamp(seed=first.config.seed, resamples=first.config.resamples, **facts),
    )
    result.save(path)
    return result, [*result.files(path), *save_figures(result, path)]


def _libraries(cells: Sequence[AnalysisCell]) -> dict[str, tuple[str, ...]]:
    """Return the library versions used for the inputs of the cells, including perturbed recordings."""
    plans = [plan for cell in cells for plan in (*cell.plans.values(), *cell.perturbed.values())]
    return merged(one for plan in plans for one in plan.store.library_sets)


def _dataset_facts(cell: AnalysisCell) -> list[dict[str, Any]]:
    return [{**dataset.facts, "limit": cell.config.limit} for dataset in cell.datasets.values()]


def _warnings(cells: Sequence[AnalysisCell]) -> list[str]:
    first = cells[0]
    generated = [name for name, dataset in first.datasets.items() if dataset.generated]
    limit = first.config.limit
    return [
        *dict.fromkeys(warning for cell in cells for warning in cell.model.warnings),
        *([f"generated recordings, which say nothing about patients: {', '.join(generated)}"] if generated else []),
        *([PATIENT_IS_RECORD] if any(dataset.spec.patient_is_record for dataset in first.datasets.values()) else []),
        *([f"only the first {limit} patients of each split were used"] if limit else []),
    ]
