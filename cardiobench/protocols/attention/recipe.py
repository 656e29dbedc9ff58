"""Settings of the attention probe, apart from what trains it: they are read without importing PyTorch."""

from dataclasses import dataclass
from typing import Literal

from pydantic import PositiveFloat, PositiveInt


@dataclass(frozen=True)
class AttentionRecipe:
    """Options of the attention probe.

    Attributes:
        heads: queries.
        learning_rate: of AdamW, constant.
        weight_decay: of AdamW.
        batch_size: recordings per step.
        epochs: at most.
        patience: epochs without a smaller validation loss after which training stops.
        class_weight: "balanced" makes up for rare classes, as in `probe`; a multilabel task has no weights.
        seeds: trainings, each with first weights and an order of its own.
        seed: of the first of them.
        device: of the training; results are the same again on one machine's CPU.
    """

    heads: PositiveInt = 16
    learning_rate: PositiveFloat = 1e-3
    weight_decay: PositiveFloat = 1e-3
    batch_size: PositiveInt = 64
    epochs: PositiveInt = 100
    patience: PositiveInt = 10
    class_weight: Literal["balanced"] | None = "balanced"
    seeds: PositiveInt = 3
    seed: int = 0
    device: Literal["cpu", "cuda"] = "cpu"
