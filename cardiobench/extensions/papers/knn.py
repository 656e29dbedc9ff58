"""Reproduce the k-nearest-neighbour view classifier of arXiv:2510.00520."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedKFold

from cardiobench.data.spec import Task
from cardiobench.extensions.papers.probe import SEED, check_has_recipe
from cardiobench.models.base import Encoder
from cardiobench.protocols.base import ProtocolOutput, TaskData
from cardiobench.protocols.knn import COMPONENT, VERSION, NearestNeighbours

__all__ = ["COMPONENT", "VERSION", "PaperNeighbours"]  # Use the versions and result keys of the protocol itself.


@dataclass(frozen=True)
class PaperNeighbours(NearestNeighbours):
    """Nearest neighbours with the published recipe.

    The number of neighbours is selected by accuracy in class-balanced folds without patient grouping. Features are not
    standardised.
    """

    profile: Literal["paper"] = "paper"  # type: ignore[assignment]

    def check(self, task: Task) -> None:
        """Reject tasks that the recipe does not cover."""
        super().check(task)
        check_has_recipe(task)

    def params_for(self, task: Task) -> dict[str, Any]:
        """Return the options shown in a result of a task; the recipe has no refits."""
        return {**super().params_for(task), "refits": 0, "comparison_refits": 0}

    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> ProtocolOutput:
        """Predict test recordings without refits; folds that share patients give no validation predictions."""
        found = NearestNeighbours.predict(self.without_refits(), data, encoder, variant)
        first = {name: found.details[name] for name in ("k", "from")}
        return ProtocolOutput(
            found.indices, found.values, {**first, "refits": 0, "comparison_refits": 0, **found.details}
        )

    def _folds(self, data: TaskData, train: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if not data.task.classes:
            yield from super()._folds(data, train)
            return
        splitter = StratifiedKFold(self.folds, shuffle=True, random_state=SEED)
        for fit, held in splitter.split(train, data.labels[train]):
            yield train[fit], train[held]

    def _scale(self, data: TaskData, train: np.ndarray) -> None:
        return None

    def _loss(self, data: TaskData, truth: np.ndarray, neighbours: np.ndarray) -> float:
        if not data.task.classes:
            return super()._loss(data, truth, neighbours)
        return -float(accuracy_score(truth, self._predictions(data, neighbours).argmax(axis=1)))
