"""The context that the steps of a run share: settings, processes, console, and the summary that they fill."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.models.base import Encoder
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.record import Record
from cardiobench.results.score_result import ScoreResult

if TYPE_CHECKING:
    from accelerate import Accelerator

    from cardiobench.runner.processes import SingleProcess


@dataclass
class RunSummary:
    """The outcome of a run.

    Attributes:
        results: Scores, new and cached.
        analyses: Analysis results, new and cached.
        not_applicable: (model, task, protocol, reason).
        failures: (model, dataset, recording, target of a dense task or "model", reason).
        files: Written by this run.
        config_file: YAML that repeats the run.
        is_main_process: Whether this process is the one that reports.
        earlier: Paths of results and analyses that were taken from an earlier run.
    """

    results: list[ScoreResult] = field(default_factory=list)
    analyses: list[AnalysisResult] = field(default_factory=list)
    not_applicable: list[tuple[str, str, str, str]] = field(default_factory=list)
    failures: list[tuple[str, str, str, str]] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    config_file: Path | None = None
    is_main_process: bool = True
    earlier: list[Record] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0 = done, 1 = something failed."""
        return 1 if self.failures else 0

    def to_json(self) -> dict[str, Any]:
        """Return everything for `--json`; tables of analyses are named, not repeated."""
        failure, reason = ("model", "dataset", "id", "reason"), ("model", "task", "protocol", "reason")
        return {
            "exit_code": self.exit_code,
            "results": [result.to_json() for result in self.results],
            "from_earlier_run": [n for n, result in enumerate(self.results) if self.is_earlier(result)],
            "analyses": [replace(one, tables={}).to_json() | {"tables": list(one.tables)} for one in self.analyses],
            "not_applicable": [dict(zip(reason, row, strict=True)) for row in self.not_applicable],
            "failures": [dict(zip(failure, row, strict=True)) for row in self.failures],
            "files": self.files,
            "config_file": self.config_file,
        }

    def is_earlier(self, record: Record) -> bool:
        """Return whether a score or an analysis was taken from an earlier run."""
        return any(one is record for one in self.earlier)

    def add(self, record: Record, files: Iterable[Path] = (), *, earlier: bool = False) -> None:
        """Note a score or an analysis, the files that were written for it, and whether it is of an earlier run."""
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
        config: The settings.
        accelerator: Accelerator of this process.
        summary: Filled by the steps of the run.
        console: Silent on all processes but the main one.
        encoders: Name -> what gives a model of the user's own.
        shared: Values that are the same for all models of the run, by a key of whoever keeps them.
    """

    config: RunConfig
    accelerator: "Accelerator | SingleProcess"
    summary: RunSummary
    console: Console
    encoders: Mapping[str, Callable[[], Encoder]] = field(default_factory=dict)
    shared: dict[Any, Any] = field(default_factory=dict)
