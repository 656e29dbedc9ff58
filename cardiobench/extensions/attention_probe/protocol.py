"""Attention probe: a learned query over the frozen tokens of a recording, instead of their mean."""

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
    """Attention over the stored vectors of a recording, with one linear layer on its output.

    The recipe is that of the frozen mode of arXiv:2509.25095: learned queries over the tokens of a frozen encoder, output
    straight to the classes, AdamW, the epoch of the least validation loss; with smaller batches where recordings are few.
    Tokens are what a model's store holds of a recording: the frames of an image model, the clips of a video model, the
    windows of an ECG model, with `--pooling tokens` the tokens of its network. They are standardised by those of the
    training recordings. Validation patients stop the training; without a validation split a fifth of the training patients
    do. The answer is the mean of `seeds` trainings, shared out to the processes of a run; the score of each is in the
    result.

    Memory: one batch of tokens, whatever the number of recordings. Time: epochs x tokens x dimension x heads.
    """

    name = "attention_probe"
    learns = True
    from_embeddings = True

    def prepare(self, data: TaskData, encoder: Encoder, variant: str = "") -> "AttentionTraining":
        """Return the shared data of all trainings: token scale, rows for fitting and rows for stopping.

        Raises:
            NotApplicable: No recording has more than one vector, or there is nothing to learn from.
        """
        self.check(data.task)
        check_learnable(data, "an attention probe")
        if np.diff(data.embeddings.offsets).max() == 1:
            raise NotApplicable(
                f"there is one vector per recording of {data.task.name}, which leaves nothing to attend to. "
                f"{data.several_vectors}".rstrip()
            )
        from cardiobench.protocols.attention.training import AttentionTraining

        return AttentionTraining(data, *self._split(data), self)

    def train(self, prepared: "AttentionTraining", member: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        """Return the answers of one seed's probe for test and validation recordings, and the summary of its training.

        Raises:
            NotApplicable: The validation loss was never finite.
        """
        probe, details = prepared.train(self.seed + member)
        test, validation = (prepared.data.indices(split) for split in ("test", "validation"))
        held_out = prepared.predict(probe, validation) if len(validation) else np.empty(0)
        return prepared.predict(probe, test), held_out, details

    def combine(self, data: TaskData, answers: Sequence[Answers]) -> ProtocolOutput:
        """Return the mean of the answers; those of each training are its repeats."""
        fit, held = self._split(data)
        counts = np.diff(data.embeddings.offsets)
        details = {
            "tokens": [int(counts.min()), int(counts.max())],
            "fitted_on": len(fit),
            "stopped_by": len(held),
            **({"class_weight": None} if data.task.rules.answer == "labels" else {}),
        }
        return mean_of_trainings(data, answers, details)

    def _split(self, data: TaskData) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices to fit on and those that stop the training, no patient on both sides."""
        return fit_and_held(data, self.seed, "an attention probe")
