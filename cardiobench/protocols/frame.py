"""Protocols that answer single frames: masks and landmarks."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cardiobench.protocols.base import BaseProtocol

if TYPE_CHECKING:
    from cardiobench.tasks.frames import DenseScorer


@dataclass(frozen=True)
class FrameOutput:
    """Predictions of labelled frames, measured one by one as they are made, since the masks of all of them fill the memory.

    Attributes:
        scorer: Measured predictions of the labelled test frames.
        floors: Name -> the same of answers that need no model and of the best possible ones; `best_uninformed` is the floor.
        answers: Predictions in the order of the scorer's rows: masks as PNG, or x and y of each point in turn.
        details: Choices made during fitting; stamped into the result.
    """

    scorer: "DenseScorer"
    floors: "Mapping[str, DenseScorer]"
    answers: Sequence[bytes | list[float]]
    details: Mapping[str, Any] = field(default_factory=dict)


class FrameProtocol(BaseProtocol):
    """A protocol that answers the labelled frames of a task. An extension plans its cells (`Extension.plans`)."""

    forms = ("frames",)
    gives = "with masks and landmarks of single frames"

    @abstractmethod
    def predict(self, plan: Any, variant: str) -> FrameOutput:
        """Predict the labelled test frames.

        Args:
            plan: Plan of the cell, as the extension made it.
            variant: Named way to predict; "" where there is one only.

        Raises:
            NotApplicable: The model cannot take part.
        """
