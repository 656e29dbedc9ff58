"""One study of a run: a model's embeddings of a subject's tasks; a record and its figures come out."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from cardiobench.core.config import RunConfig
from cardiobench.data.spec import Task
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.analysis import (
    Analysis,
    AnalysisOutput,
    AnalysisProtocol,
    Perturbation,
    collapse_warnings,
)
from cardiobench.protocols.base import TaskData
from cardiobench.report.plots import save_figures
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.paths import folder_name
from cardiobench.results.provenance import stamp
from cardiobench.runner.evaluate import (
    code_digest,
    first_answers,
    model_facts,
    model_folder,
    prompt_texts,
    seen_in_pretraining,
)
from cardiobench.runner.plan import DatasetPlan, first_patients


@dataclass(frozen=True)
class AnalysisCell:
    """One model, protocol and subject.

    Attributes:
        model: the model.
        protocol: the study.
        subject: what it looks at.
        tasks: of the subject.
        plans: dataset -> where the model's embeddings of it are.
        changed: (dataset, change key) -> where the embeddings of its disturbed test recordings are.
        unread: dataset -> ids that could not be read or encoded.
        config: of the run.
    """

    model: LoadedModel
    protocol: AnalysisProtocol
    subject: str
    tasks: tuple[Task, ...]
    plans: Mapping[str, DatasetPlan]
    changed: Mapping[tuple[str, str], DatasetPlan]
    unread: Mapping[str, frozenset[str]]
    config: RunConfig

    @property
    def path(self) -> Path:
        """`<output>/<org>__<model>/<revision>/<protocol>/<subject>.json`."""
        folder = model_folder(self.config, self.model)
        return folder / self.protocol.name / f"{file_name(self.subject)}.json"

    @cached_property
    def key(self) -> str:
        """Digest of everything that can change what is found."""
        plans = [self.plans[task.dataset] for task in self.tasks]
        facts = {
            "code": code_digest(),
            "tasks": [repr(task) for task in self.tasks],
            "datasets": [plan.source.table.digest for plan in plans],
            "embeddings": [plan.store.key for plan in plans],
            "changes": [change.key for change in self.protocol.perturbations(self.tasks)],
            "pooling": self.model.pooling,
            "options": self.protocol.get_params(),
            "prompts": [prompt_texts(task, self.config) for task in self.tasks],
            "unread": {name: sorted(ids) for name, ids in self.unread.items()},
            "limit": self.config.limit,
            "seed": self.config.seed,
            "resamples": self.config.resamples,
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:16]

    def study(self) -> Analysis:
        """What the protocol gets to see."""
        return Analysis(
            self.subject,
            self.tasks,
            model_facts(self.model),
            self.config.seed,
            self.config.resamples,
            self._open,
            lambda task: first_answers(self.plans[task.dataset].source, task, self.config),
        )

    def _open(self, task: Task, change: Perturbation | None) -> TaskData:
        plan = self.plans[task.dataset] if change is None else self.changed[task.dataset, change.key]
        rows = first_patients(plan.source.task_rows(task), self.config.limit)
        if change is not None:
            rows = change.rows(rows)
        rows = rows[~rows["id"].isin(self.unread.get(task.dataset, frozenset()))].reset_index(drop=True)
        embeddings = plan.store.load(rows["id"], rows["fingerprint"])
        return TaskData(task, rows, embeddings, self.model.pooling, self.config.prompts)


def file_name(subject: str) -> str:
    """A subject as a file's name; the double underscore is what every result file has."""
    name = subject.replace("/", "__")
    return name if "__" in name else f"across__{name}"


def load_cached_analysis(path: Path, key: str) -> AnalysisResult | None:
    """The record that is there already, if it was made from the very same things."""
    if not path.is_file():
        return None
    record = AnalysisResult.load(path)
    return record if record.stamp.get("key") == key else None


def run_analysis(cell: AnalysisCell) -> tuple[AnalysisResult, list[Path]]:
    """Look, write down, draw; returns the record and its files. `NotApplicable` where the model cannot take part."""
    study = cell.study()
    finding = cell.protocol.analyze(study, cell.model.encoder)
    finding = replace(finding, warnings=(*collapse_warnings(study), *finding.warnings))
    return _written(finding, [cell], cell.path, cell.key)


def compare_models(cells: Sequence[AnalysisCell]) -> tuple[AnalysisResult, list[Path]] | None:
    """Compare the models of several analyses of one subject and save the result; None where the protocol has no comparison."""
    first = cells[0]
    finding = first.protocol.compare_models([cell.study() for cell in cells])
    if finding is None:
        return None
    names = "+".join(sorted(folder_name(cell.model.name) for cell in cells))
    digest = hashlib.sha256(names.encode()).hexdigest()[:12]
    path = first.config.output_dir / "across" / digest / first.protocol.name / f"{file_name(first.subject)}.json"
    key = hashlib.sha256("".join(sorted(cell.key for cell in cells)).encode()).hexdigest()[:16]
    return _written(finding, cells, path, key)


def _written(
    finding: AnalysisOutput, cells: Sequence[AnalysisCell], path: Path, key: str
) -> tuple[AnalysisResult, list[Path]]:
    first = cells[0]
    sources = {task.dataset: first.plans[task.dataset].source for task in first.tasks}
    twins = [name for name, source in sources.items() if source.table.twin]
    limit = first.config.limit
    warnings = [
        *finding.warnings,
        *dict.fromkeys(sentence for cell in cells for sentence in cell.model.warnings),
        *([f"synthetic twins, which say nothing about patients: {', '.join(twins)}"] if twins else []),
        *([f"only the first {limit} patients of each split were used"] if limit else []),
    ]
    record = AnalysisResult(
        protocol=first.protocol.name,
        subject=first.subject,
        tasks=tuple(task.name for task in first.tasks),
        values=finding.values,
        tables=finding.tables,
        options={**first.protocol.get_params(), **finding.options},
        models=tuple(model_facts(cell.model) for cell in cells),
        datasets=tuple(
            {
                "name": name,
                "version": source.spec.version,
                "digest": source.table.digest,
                "twin": source.table.twin,
                "limit": limit,
            }
            for name, source in sources.items()
        ),
        seen_in_pretraining={name: seen_in_pretraining(first.model.name, name) for name in sources},
        warnings=tuple(warnings),
        stamp=stamp(seed=first.config.seed, resamples=first.config.resamples, key=key, code=code_digest()),
    )
    record.save(path)
    return record, [*record.files(path), *save_figures(record, path)]
