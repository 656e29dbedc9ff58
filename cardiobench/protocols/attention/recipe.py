"""Settings of an attention training, kept apart from the training so that reading them does not import PyTorch."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import PositiveFloat, PositiveInt

from cardiobench.core.config import RunConfig
from cardiobench.core.setting import Device


@dataclass(frozen=True)
class AttentionRecipe:
    """Options of a protocol that trains attention.

    Attributes:
        heads: Queries.
        learning_rate: Constant learning rate of AdamW.
        weight_decay: Weight decay of AdamW for the layer on the queries' output. With a hundred recordings 10 finds
            more.
        batch_size: Recordings per step; fewer where an epoch would have less than ten steps.
        epochs: Maximum number of epochs.
        patience: Epochs without a smaller validation loss after which training stops; as many as there are, as in the
            recipe, never stop it: queries are slow to find what is small.
        class_weight: "balanced" makes up for rare classes, as in `probe`; a multilabel task has no weights.
        seeds: Trainings, each with first weights and an order of its own.
        seed: Seed of the first member.
        device: Device of the training; by default that of the run (`--device`). On a CPU one thread computes each
            training, so that its bits do not depend on how many processes share the machine.
    """

    name: ClassVar[str]

    heads: PositiveInt = 16
    learning_rate: PositiveFloat = 1e-3
    weight_decay: PositiveFloat = 1e-3
    batch_size: PositiveInt = 64
    epochs: PositiveInt = 100
    patience: PositiveInt = 100
    class_weight: Literal["balanced"] | None = "balanced"
    seeds: PositiveInt = 3
    seed: int = 0
    device: Device = "auto"

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return the options that the settings of a run decide."""
        return {"seed": config.seed, "device": config.device}

    @property
    def members(self) -> int:
        """Number of trainings."""
        return self.seeds
