"""What the cells of a grid will cost, learned from those that are done."""

from collections.abc import Sequence

from cardiobench.core.config import RunConfig
from cardiobench.data import catalog
from cardiobench.data.ecg_subsets import SIZES
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.evaluate import Cell
from cardiobench.runner.plan import resolve_tasks


def of_whole_run(cell: Cell, config: RunConfig) -> list[str]:
    """Variants of every cell of a cell's protocol in a run: of all models, poolings and tasks that were asked for.

    Too many where a dataset is too small for a size; empty where the tasks were not named, since nobody knows before
    which of them have data.
    """
    tasks = [
        task for task in resolve_tasks(config.tasks) if catalog.spec(task.dataset).modality in cell.model.modalities
    ]
    variants = [variant for task in tasks for variant in cell.protocol.variants(task) if variant]
    return variants * len(config.models) * max(1, len(config.poolings)) if config.tasks else []


class DurationEstimator:
    """What cells cost, learned from those that are done: the same variant's mean, else the same classifier's, else all cells'.

    A cell of another size costs more or less as it has more or fewer records.
    """

    def __init__(self):
        self.paid: dict[str, list[float]] = {}

    @classmethod
    def of(cls, results: Sequence[ScoreResult], protocol: str) -> "DurationEstimator":
        """The prices that finished results of a protocol tell."""
        prices = cls()
        for result in results:
            if result.protocol == protocol:
                prices.update(result)
        return prices

    def __bool__(self) -> bool:
        return bool(self.paid)

    def update(self, result: ScoreResult) -> None:
        """Note what a cell took."""
        self.paid.setdefault(result.variant, []).append(result.stamp["seconds"])

    def estimate(self, variant: str) -> float:
        """Seconds that a cell of this variant will take; something has to be known."""
        costs = self.paid.get(variant) or self._scaled(variant, alike=True) or self._scaled(variant, alike=False)
        return sum(costs) / len(costs)

    def _scaled(self, variant: str, alike: bool) -> list[float]:
        """Costs of other variants, of the same classifier or of all, as they would be at this variant's size."""
        size, _, classifier = variant.partition(".")
        return [
            cost * most_records(size) / most_records(other)
            for name, costs in self.paid.items()
            for other, _, kind in [name.partition(".")]
            if kind == classifier or not alike
            for cost in costs
        ]


def most_records(size: str) -> int:
    """Records that a size may have; of the one without an upper end twice its least."""
    least, most = SIZES[size]
    return most or 2 * least


def in_words(seconds: float) -> str:
    """A span of time, for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
