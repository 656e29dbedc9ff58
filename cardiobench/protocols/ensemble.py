"""Base class of protocols that train independent members, which the processes of a run share."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from cardiobench.models.base import Encoder
from cardiobench.protocols.base import PredictionProtocol, ProtocolOutput, TaskData


class EnsembleProtocol(PredictionProtocol):
    """A protocol that trains independent members and combines their predictions.

    The members are distributed over the processes of a run. Each is trained entirely by one process, so the result does
    not depend on the number of processes.
    """

    @property
    @abstractmethod
    def members(self) -> int:
        """Number of members."""

    @abstractmethod
    def prepare(self, data: TaskData, encoder: Encoder, variant: str = "") -> Any:
        """Return the shared training data of all members of a variant.

        Raises:
            NotApplicable: The protocol does not apply to the model.
        """

    @abstractmethod
    def train(self, prepared: Any, member: int) -> Any:
        """Train a member and return its predictions, which are sent to the main process.

        Raises:
            NotApplicable: The member cannot be trained.
        """

    @abstractmethod
    def combine(self, data: TaskData, answers: Sequence[Any]) -> ProtocolOutput:
        """Combine the predictions of all members, in their order."""

    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> ProtocolOutput:
        """Train all members in this process and predict the test rows."""
        prepared = self.prepare(data, encoder, variant)
        return self.combine(data, [self.train(prepared, member) for member in range(self.members)])
