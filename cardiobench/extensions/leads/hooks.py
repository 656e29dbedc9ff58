"""Compare lead sets after each model."""

from collections.abc import Iterable

from cardiobench.extensions.leads.loss import compare_lead_sets
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.context import RunContext
from cardiobench.runner.hooks import RunHooks


class LeadHooks(RunHooks):
    """Losses of lead sets."""

    def after_model(self, cells: Iterable[Cell], context: RunContext) -> None:
        """Save losses for each task with results of twelve and fewer leads."""
        compare_lead_sets(cells, context)
