"""Attention probe: a learned query over the frozen tokens of a recording, instead of their mean."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.models.base import Encoder
from cardiobench.protocols.attention.recipe import AttentionRecipe
from cardiobench.protocols.base import PredictionProtocol, ProtocolOutput, TaskData
from cardiobench.protocols.learnable import check_learnable, two_answers


@dataclass(frozen=True)
class AttentionProbe(AttentionRecipe, PredictionProtocol):
    """Attention over the stored vectors of a recording, and one linear layer on what it gathers.

    The recipe is that of the frozen mode of arXiv:2509.25095: learned queries over the tokens of a frozen encoder, output
    straight to the classes, AdamW, the epoch of the least validation loss. Tokens are what a model's store holds of a
    recording: the frames of an image model, the clips of a video model, the windows of an ECG model, with `--pooling tokens` the tokens of its network. They are standardised by those of the training recordings. Validation
    patients stop the training; without a validation split a fifth of the training patients do. The answer is the mean of
    `seeds` trainings; the score of each is in the result.

    Memory: one batch of tokens, whatever the number of recordings. Time: epochs x tokens x dimension x heads.
    """

    name = "attention_probe"

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return the options that the settings of a run decide."""
        return {"seed": config.seed}

    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> ProtocolOutput:
        """Predict the test recordings.

        Raises:
            NotApplicable: no recording has more than one vector, there is nothing to learn from, or no validation loss is
                finite.
        """
        self.check(data.task)
        check_learnable(data, "an attention probe")
        counts = np.diff(data.embeddings.offsets)
        if counts.max() == 1:
            raise NotApplicable(
                f"the model gives one vector per recording of {data.task.name}, which leaves nothing to attend to. "
                "Give --pooling tokens for an ECG network that has tokens"
            )
        from cardiobench.protocols.attention.training import AttentionTraining

        fit, held = self._split(data)
        training = AttentionTraining(data, fit, held, self)
        test = data.indices("test")
        values, chosen = [], []
        for seed in range(self.seed, self.seed + self.seeds):
            probe, details = training.train(seed)
            values.append(training.predict(probe, test))
            chosen.append(details)
        details = {
            "tokens": [int(counts.min()), int(counts.max())],
            "fitted_on": len(fit),
            "stopped_by": len(held),
            "epoch": [one["epoch"] for one in chosen],
            "validation_loss": [one["validation_loss"] for one in chosen],
            **({"class_weight": None} if data.task.kind == "multilabel" else {}),
        }
        return ProtocolOutput(test, np.mean(values, axis=0), details, repeats=tuple(values))

    def _split(self, data: TaskData) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices to fit on and those that stop the training, no patient on both sides."""
        train, validation = data.indices("train"), data.indices("validation")
        if len(validation):
            return train, validation
        patients = data.patients[train]
        if len(np.unique(patients)) < 2:
            raise NotApplicable(
                f"{data.task.name} has 1 patient to learn from here, and an attention probe needs 2 or more"
            )
        splitter = GroupShuffleSplit(1, test_size=0.2, random_state=self.seed)
        ((fit, held),) = splitter.split(train, groups=patients)
        if data.task.classes and not two_answers(data.labels[train[fit]]):
            raise NotApplicable(f"{data.task.name} has too few patients of its rarer class to learn from here")
        return train[fit], train[held]
