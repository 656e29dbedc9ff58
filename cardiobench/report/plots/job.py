"""Define a group of figures that are drawn together."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cardiobench.data.spec import Task
from cardiobench.report.page.naming import anchor
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.collect import ResultEntry


@dataclass(frozen=True)
class FigureJob:
    """Figures of one part of a report.

    Attributes:
        kind: Kind of job: task, model, analysis or side_by_side.
        name: Name of the task or model, path of the analysis, or key shared by several analyses.
        entries: Results of the task or model.
        records: Record of the analysis, or one record per model.
        tasks: Task of each result by name, None for a task that this version does not know. Drawing processes then do
            not import the datasets' builders.
    """

    kind: str
    name: str
    entries: tuple[ResultEntry, ...] = ()
    records: tuple[AnalysisResult, ...] = ()
    tasks: Mapping[str, Task | None] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """Stem of the file names."""
        return anchor(self.kind, self.name)
