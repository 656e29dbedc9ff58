"""Protocols that predict single frames: masks and landmarks."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cardiobench.protocols.base import BaseProtocol

if TYPE_CHECKING:
    from cardiobench.tasks.frames import DenseScorer


@dataclass(frozen=True)
class FrameOutput:
    """Predictions for labelled frames, measured one by one, because all masks together would not fit into memory.

    Attributes:
        scorer: Measured predictions of the labelled test frames.
        floors: Mapping from name to scorer of predictions that need no model, or of the best possible predictions;
            `best_uninformed` is the floor.
        answers: Predictions in the order of the scorer's rows: masks as PNG, or x and y of each point.
        details: Choices made during fitting; stamped into the result.
    """

    scorer: "DenseScorer"
    floors: "Mapping[str, DenseScorer]"
    answers: Sequence[bytes | list[float]]
    details: Mapping[str, Any] = field(default_factory=dict)


class FrameProtocol(BaseProtocol):
    """A protocol that predicts the labelled frames of a task; an extension plans its cells (`Extension.plans`)."""

    forms = ("frames",)
    gives = "masks and landmarks of single frames"

    @abstractmethod
    def predict(self, plan: Any, variant: str) -> FrameOutput:
        """Predict the labelled test frames.

        Args:
            plan: Plan of the cell, made by the extension.
            variant: Variant of the prediction; "" if there is only one.

        Raises:
            NotApplicable: The model cannot take part.
        """
