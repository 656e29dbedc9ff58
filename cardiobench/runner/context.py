"""Shared context of a run: settings, processes, console and summary."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.data import catalog
from cardiobench.models.base import Encoder
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.record import Record
from cardiobench.results.score_result import ScoreResult

if TYPE_CHECKING:
    from accelerate import Accelerator

    from cardiobench.runner.processes import SingleProcess


@dataclass
class RunSummary:
    """Outcome of a run.

    Attributes:
        results: New and cached scores.
        analyses: New and cached analyses.
        not_applicable: Inapplicable combinations: (model, task, protocol, reason).
        failures: Failures: (model, dataset, recording, dense target or "model", reason).
        files: Paths of written files.
        config_file: Path of the YAML file that repeats the run.
        is_main_process: Whether this process reports the outcome.
        earlier: Paths of results and analyses from an earlier run.
        loaded: Mapping from each requested model that was loaded to its name in results and its modalities.
        no_result: Why requested models or tasks have no result, and what to do; empty if all have one. Equal on all
            processes.
        no_result_below_table: The same without the reasons of inapplicable combinations, to print below their table.
        asked: Tasks named by the request; empty for all whose data is here, or those of a suite.
        is_empty: Whether the run has neither scores nor analyses. Equal on all processes.
    """

    results: list[ScoreResult] = field(default_factory=list)
    analyses: list[AnalysisResult] = field(default_factory=list)
    not_applicable: list[tuple[str, str, str, str]] = field(default_factory=list)
    failures: list[tuple[str, str, str, str]] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    config_file: Path | None = None
    is_main_process: bool = True
    earlier: list[Record] = field(default_factory=list)
    loaded: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    no_result: str = ""
    no_result_below_table: str = ""
    asked: frozenset[str] = frozenset()
    is_empty: bool = False

    @property
    def exit_code(self) -> int:
        """Exit code: 0 for success, 1 if something failed, or if a requested model or task has no result."""
        return 1 if self.failures or self.no_result else 0

    def answered(self) -> set[tuple[str, str]]:
        """Return pairs (model, task) of all scores and analyses."""
        scores = {(str(one.model["name"]), one.task) for one in self.results}
        return scores | {
            (str(model["name"]), task) for one in self.analyses for model in one.models for task in one.tasks
        }

    def by_request(self) -> tuple[list[ScoreResult], list[ScoreResult]]:
        """Return the scores of the requested tasks, and those of others, such as answers pooled over datasets."""
        derived = {task.name for task in catalog.tasks_over_datasets()}
        asked = [one for one in self.results if (one.task in self.asked if self.asked else one.task not in derived)]
        return asked, [one for one in self.results if not any(one is each for each in asked)]

    def to_json(self) -> dict[str, Any]:
        """Return the content for `--json`, with tables of analyses by name."""
        failure, reason = ("model", "dataset", "id", "reason"), ("model", "task", "protocol", "reason")
        return {
            "exit_code": self.exit_code,
            "results": [result.to_json() for result in self.results],
            "from_earlier_run": [n for n, result in enumerate(self.results) if self.is_earlier(result)],
            "analyses": [replace(one, tables={}).to_json() | {"tables": list(one.tables)} for one in self.analyses],
            "not_applicable": [dict(zip(reason, row, strict=True)) for row in self.not_applicable],
            "failures": [dict(zip(failure, row, strict=True)) for row in self.failures],
            "no_result": self.no_result,
            "files": self.files,
            "config_file": self.config_file,
        }

    def is_earlier(self, record: Record) -> bool:
        """Return whether a score or an analysis comes from an earlier run."""
        return any(one is record for one in self.earlier)

    def add(self, record: Record, files: Iterable[Path] = (), *, earlier: bool = False) -> None:
        """Add a score or an analysis with its files."""
        if earlier:
            self.earlier.append(record)
        if isinstance(record, ScoreResult):
            self.results.append(record)
        elif isinstance(record, AnalysisResult):
            self.analyses.append(record)
        self.files += files


@dataclass(frozen=True)
class RunContext:
    """Settings and services of a run.

    Attributes:
        config: Run settings.
        accelerator: Accelerator of this process.
        summary: Summary filled during the run.
        console: Console, silent except on the main process.
        encoders: Mapping from name to factory of user models.
        shared: Cache of values shared by all models of the run.
    """

    config: RunConfig
    accelerator: "Accelerator | SingleProcess"
    summary: RunSummary
    console: Console
    encoders: Mapping[str, Callable[[], Encoder]] = field(default_factory=dict)
    shared: dict[Any, Any] = field(default_factory=dict)
