"""Combine the best classifiers after each model."""

from collections.abc import Iterable

from cardiobench.extensions.cross_validation.best import score_best_classifiers
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.context import RunContext
from cardiobench.runner.hooks import RunHooks


class CrossValidationHooks(RunHooks):
    """Best classifiers of each size."""

    def after_model(self, cells: Iterable[Cell], context: RunContext) -> None:
        """Score the classifier chosen within each fold."""
        score_best_classifiers(cells, context)
