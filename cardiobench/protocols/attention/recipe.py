"""Settings of attention training, in a separate module so that reading them does not import PyTorch."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PositiveFloat

from cardiobench.core.config import RunConfig
from cardiobench.core.setting import Device, Positive, Seed
from cardiobench.models.base import Encoder
from cardiobench.protocols.options import Repeats


@dataclass(frozen=True)
class AttentionRecipe:
    """Options of a protocol that trains attention.

    Attributes:
        heads: Number of learned queries.
        learning_rate: Constant learning rate of AdamW.
        weight_decay: Weight decay of AdamW for the layer on the queries' output. With a hundred recordings, 10 works
            better.
        batch_size: Recordings per step; smaller if an epoch would have fewer than ten steps.
        epochs: Maximum number of epochs.
        patience: Epochs without a lower validation loss after which training stops. If it equals `epochs`, as in the
            published recipe, training never stops early, because queries are slow to find small signals.
        class_weight: "balanced" weights rare classes up, as in `probe`; ignored for multilabel tasks.
        seeds: Number of trainings, each with its own initial weights and order.
        seed: Seed of the first training.
        device: Device of the training; by default that of the run (`--device`). On a CPU each training uses one thread,
            so that the result does not depend on the number of processes.
    """

    name: ClassVar[str]

    heads: Annotated[int, Field(ge=1, le=1024)] = 16
    learning_rate: PositiveFloat = 1e-3
    weight_decay: PositiveFloat = 1e-3
    batch_size: Positive = 64
    epochs: Positive = 100
    patience: Positive = 100
    class_weight: Literal["balanced"] | None = "balanced"
    seeds: Repeats = 3
    seed: Seed = 0
    device: Device = "auto"

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return the options that follow from the settings of a run."""
        return {"seed": config.seed, "device": config.device}

    def works_from_embeddings(self, encoder: Encoder) -> bool:
        """Return whether the training runs on the processor: workers would share one GPU."""
        from cardiobench.models.device import choose_device

        return choose_device(self.device, f"{self.name}.device").type == "cpu"

    @property
    def members(self) -> int:
        """Number of trainings."""
        return self.seeds
