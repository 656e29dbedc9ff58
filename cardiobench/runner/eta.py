"""Estimate how long the cells of a grid will take, from those that are done."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.data import catalog
from cardiobench.data.ecg_subsets import SIZES, SizeName
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.cell import Cell
from cardiobench.runner.plan import resolve_tasks


def variants_of_run(cell: Cell, config: RunConfig) -> list[str]:
    """Return the variants of all cells of a cell's protocol in a run: of all models, poolings and tasks asked for.

    Too many where a dataset is too small for a size; empty where the tasks were not named, since which of them have
    data is not known before.
    """
    tasks = [
        task
        for task in resolve_tasks(config.tasks, config.profile)
        if catalog.spec(task.dataset).modality in cell.model.modalities
    ]
    variants = [variant for task in tasks for variant in cell.protocol.variants(task) if variant]
    return variants * len(config.models) * max(1, len(config.poolings)) if config.tasks else []


# CPU seconds of a cell with the default grids on one core of an x86-64 server: the geometric mean of 106 records x 200 and
# 300 x 384, from which each is off by a factor of two at most. Only their ratios are used, until one cell of the classifier is done.
UNIT_COSTS = {"xgboost": 34.0, "forest": 51.0, "mlp": 43.0, "tree": 3.0, "logistic": 2.0}


@dataclass(frozen=True)
class FinishedCell:
    """The duration of a finished cell.

    Attributes:
        size: of its variant.
        classifier: of its variant.
        model: its name.
        records: that it had.
        seconds: that it took.
    """

    size: str
    classifier: str
    model: str
    records: int
    seconds: float


class DurationEstimator:
    """Durations of cells, learned from the finished ones that are most like them.

    Those of the same classifier come first, of these the ones of the nearest size, of these the ones of the same model; the
    mean of the most alike counts, in proportion to the records. Until one of the classifier is done, those of others stand in,
    in proportion to `UNIT_COSTS`.

    Args:
        results: finished ones; those of another protocol are left out.
        protocol: whose cells are estimated.
    """

    def __init__(self, results: Sequence[ScoreResult] = (), protocol: str = ""):
        self.finished: list[FinishedCell] = []
        for result in results:
            if result.protocol == protocol:
                self.update(result)

    def __bool__(self) -> bool:
        return bool(self.finished)

    def update(self, result: ScoreResult) -> None:
        """Add the duration of a finished cell; what was put together from cells is none."""
        size, _, classifier = result.variant.partition(".")
        if classifier in UNIT_COSTS:
            model, records = str(result.model.get("name")), result.options["records"]
            self.finished.append(FinishedCell(size, classifier, model, records, result.stamp["seconds"]))

    def knows(self, variant: str, model: str) -> bool:
        """Return whether a cell of this variant and model is done."""
        return any((f"{cell.size}.{cell.classifier}", cell.model) == (variant, model) for cell in self.finished)

    def estimate(self, variant: str, model: str = "", records: int | None = None) -> float:
        """Return the seconds that a cell will take; at least one cell has to be done.

        Args:
            variant: of the cell.
            model: its name.
            records: of the cell; where they are not known, as many as its size may have.
        """
        size, _, classifier = variant.partition(".")
        sizes = list(SIZES)

        def distance(cell: FinishedCell) -> tuple[bool, int, bool]:
            steps = abs(sizes.index(cast(SizeName, cell.size)) - sizes.index(cast(SizeName, size)))
            return cell.classifier != classifier, steps, cell.model != model

        nearest = min(map(distance, self.finished))
        costs = [
            cell.seconds / UNIT_COSTS[cell.classifier] / cell.records
            for cell in self.finished
            if distance(cell) == nearest
        ]
        records = max_records(size) if records is None else records
        return UNIT_COSTS[classifier] * records * sum(costs) / len(costs)


def remaining_seconds(seconds: Sequence[float], jobs: int) -> float:
    """Return the least time in which cells of these durations are done, `jobs` at a time.

    >>> remaining_seconds([60.0, 2.0, 2.0], jobs=8), remaining_seconds([4.0] * 10, jobs=2)
    (60.0, 20.0)
    """
    return max(sum(seconds) / jobs, max(seconds, default=0.0))


def count_records(cells: Sequence[Cell]) -> list[int]:
    """Return how many records each cell has; none where its size is not available."""
    counts: dict[tuple[str, str], int] = {}
    sizes = [(cell.task.name, cell.variant.partition(".")[0]) for cell in cells]
    for cell, size in zip(cells, sizes, strict=True):
        if size not in counts:
            try:
                counts[size] = len(cell.protocol.select_rows(cell.rows, cell.task, cell.variant))
            except NotApplicable:
                counts[size] = 0
    return [counts[size] for size in sizes]


def one_of_each_first(variants: Sequence[str]) -> list[int]:
    """Return positions of cells so that the first of each variant comes before the second of any.

    Once these are done every other one's duration is known from a cell of its own kind.

    >>> one_of_each_first(["XS.tree", "S.tree", "XS.tree", "XS.mlp"])
    [0, 1, 3, 2]
    """
    seen: Counter[str] = Counter()
    turns = []
    for position, variant in enumerate(variants):
        turns.append((seen[variant], position))
        seen[variant] += 1
    return [position for _, position in sorted(turns)]


def max_records(size: str) -> int:
    """Return the records that a size may have; of the one without an upper end twice its least."""
    least, most = SIZES[cast(SizeName, size)]
    return most or 2 * least


def format_seconds(seconds: float) -> str:
    """Return a duration for people.

    >>> format_seconds(12.4), format_seconds(600), format_seconds(7200)
    ('12 s', '10 min', '2.0 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
