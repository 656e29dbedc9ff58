"""Estimate how long the cells of a grid will take, from those that are done."""

from collections import Counter
from collections.abc import Sequence
from typing import cast

from cardiobench.core.config import RunConfig
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


class DurationEstimator:
    """Durations of cells, learned from those that are done, whatever comes nearest first.

    The mean of the same variant of the same model; of the same variant; of the same classifier at other sizes; of all.
    A cell of another size takes more or less time as it has more or fewer records.

    Args:
        results: finished ones; those of another protocol are left out.
        protocol: whose cells are estimated.
    """

    def __init__(self, results: Sequence[ScoreResult] = (), protocol: str = ""):
        self.seconds: dict[tuple[str, str], list[float]] = {}
        for result in results:
            if result.protocol == protocol:
                self.update(result)

    def __bool__(self) -> bool:
        return bool(self.seconds)

    def update(self, result: ScoreResult) -> None:
        """Add the duration of a finished cell."""
        self.seconds.setdefault((result.variant, str(result.model.get("name"))), []).append(result.stamp["seconds"])

    def knows(self, variant: str, model: str) -> bool:
        """Return whether a cell of this variant and model is done."""
        return (variant, model) in self.seconds

    def estimate(self, variant: str, model: str = "") -> float:
        """Return the seconds that a cell will take; at least one cell has to be done."""
        known = (
            self.seconds.get((variant, model))
            or [duration for (name, _), durations in self.seconds.items() if name == variant for duration in durations]
            or self._scaled(variant, same=True)
            or self._scaled(variant, same=False)
        )
        return sum(known) / len(known)

    def _scaled(self, variant: str, same: bool) -> list[float]:
        """Return durations of other variants, of the same classifier or of all, as they would be at this variant's size."""
        size, _, classifier = variant.partition(".")
        return [
            duration * max_records(size) / max_records(other)
            for (name, _), durations in self.seconds.items()
            for other, _, kind in [name.partition(".")]
            if kind == classifier or not same
            for duration in durations
        ]


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
