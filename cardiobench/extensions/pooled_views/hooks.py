"""Score pooled views after each model."""

from collections.abc import Iterable

from cardiobench.extensions.pooled_views.pool import pool_views
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.context import RunContext
from cardiobench.runner.hooks import RunHooks


class PooledViewHooks(RunHooks):
    """Pooled view predictions."""

    def after_model(self, cells: Iterable[Cell], context: RunContext) -> None:
        """Score pooled view predictions for each protocol with at least two datasets."""
        pool_views(cells, context)
