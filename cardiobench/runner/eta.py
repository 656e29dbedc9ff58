"""Estimate the remaining time of parallel cells from finished cells and declared workloads."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.data import catalog
from cardiobench.protocols.base import PredictionProtocol, Workload
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.context import RunContext
from cardiobench.runner.plan import resolve_tasks


def variants_of_run(cell: Cell, config: RunConfig) -> list[str]:
    """Return the variants of all cells of a protocol in a run: all models, poolings and requested tasks.

    The list may be too long if datasets are too small for some sizes. It is empty if no tasks were requested, because
    available tasks are not known in advance.
    """
    variants: list[str] = []
    for task in resolve_tasks(config.tasks, config.profile) if config.tasks else ():
        if catalog.spec(task.dataset).modality in cell.model.modalities:
            try:
                cell.protocol.check(task)
            except NotApplicable:
                continue
            variants += cell.protocol.variants(task)
    return variants * len(config.models) * max(1, len(config.poolings))


@dataclass(frozen=True)
class FinishedCell:
    """Finished cell.

    Attributes:
        variant: Variant of the result.
        model: Name of the model.
        work: Workload declared by its protocol.
        seconds: Duration of the cell.
    """

    variant: str
    model: str
    work: Workload
    seconds: float


class DurationEstimator:
    """Durations of finished cells, used to estimate those of similar cells.

    Estimates use cells of the same kind if available, then those with the closest size, then those of the same model.
    The mean is scaled by the workload. Without a cell of the same kind, other kinds are used.

    Args:
        protocol: Protocol of the cells to estimate.
        results: Finished results; other protocols are ignored.
    """

    def __init__(self, protocol: PredictionProtocol, results: Sequence[ScoreResult] = ()):
        self.protocol = protocol
        self.finished: list[FinishedCell] = []
        for result in results:
            if result.protocol == protocol.name:
                self.update(result)

    def __bool__(self) -> bool:
        return bool(self.finished)

    def update(self, result: ScoreResult) -> None:
        """Add the duration of a finished cell, ignoring derived results."""
        if work := self.protocol.workload(result.variant, result.options.get("records")):
            model = str(result.model.get("name"))
            self.finished.append(FinishedCell(result.variant, model, work, result.stamp["seconds"]))

    def knows(self, variant: str, model: str) -> bool:
        """Return whether a cell with this variant and model is finished."""
        return any((cell.variant, cell.model) == (variant, model) for cell in self.finished)

    def estimate(self, variant: str, model: str = "", records: int | None = None) -> float:
        """Estimate the duration of a cell in seconds; requires at least one finished cell.

        Args:
            variant: Variant of the cell.
            model: Name of the model.
            records: Number of records; None uses the maximum.
        """
        work = self.protocol.workload(variant, records)
        if work is None:
            return 0.0

        def distance(cell: FinishedCell) -> tuple[bool, int, bool]:
            return cell.work.kind != work.kind, abs(cell.work.size - work.size), cell.model != model

        nearest = min(map(distance, self.finished))
        rates = [cell.seconds / cell.work.cost for cell in self.finished if distance(cell) == nearest]
        return work.cost * sum(rates) / len(rates)


def remaining_seconds(seconds: Sequence[float], jobs: int) -> float:
    """Return the minimum time for cells with the given durations on `jobs` workers.

    >>> remaining_seconds([60.0, 2.0, 2.0], jobs=8), remaining_seconds([4.0] * 10, jobs=2)
    (60.0, 20.0)
    """
    return max(sum(seconds) / jobs, max(seconds, default=0.0))


def count_records(cells: Sequence[Cell]) -> list[int]:
    """Return the number of records of each cell, omitting sizes that are not available."""
    counts: dict[tuple[str, int], int] = {}
    found = []
    for cell in cells:
        work = cell.protocol.workload(cell.variant)
        size = cell.task.name, work.size if work else 0
        if size not in counts:
            try:
                counts[size] = len(cell.protocol.select_rows(cell.rows, cell.task, cell.variant))
            except NotApplicable:
                counts[size] = 0
        found.append(counts[size])
    return found


def one_of_each_first(variants: Sequence[str]) -> list[int]:
    """Order cells so that one of each variant comes before any second one.

    Afterwards, every other duration can be estimated from a cell of the same kind.

    >>> one_of_each_first(["XS.tree", "S.tree", "XS.tree", "XS.mlp"])
    [0, 1, 3, 2]
    """
    seen: Counter[str] = Counter()
    turns = []
    for position, variant in enumerate(variants):
        turns.append((seen[variant], position))
        seen[variant] += 1
    return [position for _, position in sorted(turns)]


def format_seconds(seconds: float) -> str:
    """Format a duration for display.

    >>> format_seconds(12.4), format_seconds(600), format_seconds(7200)
    ('12 s', '10 min', '2.0 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class RemainingTime:
    """Announce long cells of one protocol on one dataset, with the remaining time by what finished cells took.

    Args:
        cells: Cells of one model.
        context: Run context.
    """

    def __init__(self, cells: Sequence[Cell], context: RunContext):
        self.cells, self.config, self.print = cells, context.config, context.console.print
        self.durations = DurationEstimator(cells[0].protocol, context.summary.results)
        self.waiting: dict[int, int] = {}  # Mapping from position to number of records.
        self.unknown: set[str] = set()  # Variants without a finished cell.
        self.slots = 1

    def order(self, todo: Sequence[int]) -> list[int]:
        """Return positions with one of each variant first."""
        return [todo[position] for position in one_of_each_first([self.cells[n].variant for n in todo])]

    def begin(self, todo: Sequence[int], slots: int) -> None:
        """Print the plan of the cells to compute, `slots` at a time."""
        first, self.slots = self.cells[0], slots
        kept = len(self.cells) - len(todo)
        dataset = f"{first.dataset.spec.name} with {first.model.name}"
        counts = f"{first.protocol.name}: {len(self.cells)} cells of {dataset}, {kept} kept, {len(todo)} to do"
        if not todo:
            self.print(counts)
            return
        self.waiting = dict(zip(todo, count_records([self.cells[n] for n in todo]), strict=True))
        self.unknown = {
            self.cells[n].variant for n in todo if not self.durations.knows(self.cells[n].variant, first.model.name)
        }
        self.print(f"{counts}, {slots} at a time")
        if self.durations:
            self._estimate("those before them")
        else:
            for line in first.protocol.plan_lines():
                self.print(f"  {line}")

    def finish(self, position: int, record: ScoreResult | None) -> None:
        """Learn from a finished cell, and print the first estimate and the one with a cell of each variant."""
        first_known, variant = not self.durations, self.cells[position].variant
        del self.waiting[position]
        if record:
            self.durations.update(record)
        last_kind = self.unknown == {variant}
        self.unknown.discard(variant)
        if self.durations and self.waiting and (first_known or last_kind):
            self._estimate("the first cell of each protocol" if last_kind else "the first")

    def _estimate(self, source: str) -> None:
        model, durations = self.cells[0].model.name, self.durations
        costs = [durations.estimate(self.cells[n].variant, model, count) for n, count in self.waiting.items()]
        seconds = format_seconds(remaining_seconds(costs, self.slots))
        self.print(f"  about {seconds} for {len(costs)} cells, by what {source} took")
        whole = variants_of_run(self.cells[0], self.config)
        if len(whole) > len(self.cells):
            most = sum(count * durations.estimate(variant) for variant, count in Counter(whole).items()) / self.slots
            self.print(f"  at most about {format_seconds(most)} for all {len(whole)} cells of this run")
