"""One part of a report whose figures are drawn together."""

from dataclasses import dataclass

from cardiobench.report.page.naming import anchor
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.collect import ResultEntry


@dataclass(frozen=True)
class FigureJob:
    """The figures of one part of a report.

    Attributes:
        kind: Task, model, analysis or side_by_side.
        name: Name of the task or model, path of the analysis, or shared key of several analyses.
        entries: Results of the task or model.
        records: The analysis, or one of each model side by side.
    """

    kind: str
    name: str
    entries: tuple[ResultEntry, ...] = ()
    records: tuple[AnalysisResult, ...] = ()

    @property
    def stem(self) -> str:
        """First part of the names of its files."""
        return anchor(self.kind, self.name)
