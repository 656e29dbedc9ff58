"""Train an attention probe on the frozen tokens of each recording."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardiobench.core.errors import NotApplicable
from cardiobench.models.base import Encoder
from cardiobench.protocols.attention.recipe import AttentionRecipe
from cardiobench.protocols.base import ProtocolOutput, TaskData
from cardiobench.protocols.ensemble import EnsembleProtocol
from cardiobench.protocols.learnable import check_learnable
from cardiobench.protocols.training.ensemble import Answers, mean_of_trainings
from cardiobench.protocols.training.split import fit_and_held

if TYPE_CHECKING:
    from cardiobench.protocols.attention.training import AttentionTraining

COMPONENT = "protocol attention_probe"
VERSION = 2


@dataclass(frozen=True)
class AttentionProbe(AttentionRecipe, EnsembleProtocol):
    """Pool stored vectors with learned attention, followed by one linear layer.

    The recipe follows the frozen mode of arXiv:2509.25095: learned queries, AdamW, and the epoch with the smallest
    validation loss. Batches are smaller for small datasets. Tokens are frames (image models), clips (video models) or
    windows (ECG models); with `--pooling tokens` they are the tokens of the network. Tokens are standardised with the
    statistics of the training set. Early stopping uses validation patients, or a fifth of the training patients if
    there is no validation split. Predictions are averaged over `seeds` runs, which can be trained in parallel; the
    result contains the score of each run.

    Memory: one batch of tokens. Time: epochs x tokens x dimension x heads.
    """

    name = "attention_probe"
    learns = True
    from_embeddings = True

    def prepare(self, data: TaskData, encoder: Encoder, variant: str = "") -> "AttentionTraining":
        """Return data shared by all training runs: token scale, training rows and early-stopping rows.

        Raises:
            NotApplicable: No recording has more than one vector, or no training data remains.
        """
        self.check(data.task)
        check_learnable(data, "an attention probe")
        if np.diff(data.embeddings.offsets).max() == 1:
            raise NotApplicable(
                f"there is one vector per recording of {data.task.name}, so there is nothing to attend to. "
                f"{data.several_vectors}".rstrip()
            )
        from cardiobench.protocols.attention.training import AttentionTraining

        return AttentionTraining(data, *self._split(data), self)

    def train(self, prepared: "AttentionTraining", member: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        """Return test and validation predictions of one seed, (n,) or (n, classes), with a summary of the training.

        Raises:
            NotApplicable: The validation loss is not finite in any epoch.
        """
        probe, details = prepared.train(self.seed + member)
        test, validation = (prepared.data.indices(split) for split in ("test", "validation"))
        held_out = prepared.predict(probe, validation) if len(validation) else np.empty(0)
        return prepared.predict(probe, test), held_out, details

    def combine(self, data: TaskData, answers: Sequence[Answers]) -> ProtocolOutput:
        """Return the mean prediction; individual runs are stored as repeats."""
        fit, held = self._split(data)
        counts = np.diff(data.embeddings.offsets)
        details = {
            "tokens": [int(counts.min()), int(counts.max())],
            "fitted_on": len(fit),
            "stopped_by": len(held),
            **({"class_weight": None} if data.task.rules.answer == "labels" else {}),
        }
        return mean_of_trainings(data, answers, details, self.seed)

    def _split(self, data: TaskData) -> tuple[np.ndarray, np.ndarray]:
        """Return the row indices for training (n,) and for early stopping (m,), with disjoint patients."""
        return fit_and_held(data, self.seed, "an attention probe")
