"""Options of fine-tuning."""

from dataclasses import dataclass, fields
from typing import Annotated, Literal, cast

from annotated_types import Len
from pydantic import Field

from cardiobench.core.setting import Device, Positive, Seed
from cardiobench.protocols.options import Repeats

Mode = Literal["full", "last", "lora"]
MODES: tuple[Mode, ...] = ("full", "last", "lora")
ONLY_OF: dict[str, tuple[Mode, ...]] = {
    "blocks": ("last",),
    "rank": ("lora",),
    "layer_rates": ("full", "last"),
    "layer_decay": ("full", "last"),
}
"""Options that change the networks of some trained parts alone."""
Rate = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


@dataclass(frozen=True)
class FinetuneRecipe:
    """Trained part, learning rates and budget.

    Attributes:
        modes: Trained parts, one result each: "full" trains all that makes the vector, "last" its last blocks with what follows
            them, "lora" adapters of low rank (package `peft`), with all weights of the model as they are.
        blocks: Number of last blocks that "last" trains.
        rank: Rank of the adapters.
        layer_rates: Learning rates of layers: "decay" multiplies by `layer_decay` for each block before the head, as BEiT and
            MAE do; "steps" takes a tenth in the later and a hundredth in the earlier half (arXiv:2509.25095); "equal" one for all.
            Adapters have that of the head.
        layer_decay: Factor of "decay".
        rates: Learning rates of the head, of which validation patients choose one.
        epochs: Epochs of each training.
        seeds: Trainings at each rate.
        seed: Seed of the first of them.
        parts: Parts of a recording, such as frames or windows, that a step sees; an answer uses all.
        batch_size: Recordings per step.
        micro_batch: Recordings in memory at once; their gradients add up to those of the batch.
        weight_decay: Weight decay of AdamW.
        device: Device of the training; by default that of the run (`--device`).
    """

    modes: Annotated[tuple[Mode, ...], Len(1)] = MODES[:1]
    blocks: Positive = 2
    rank: Positive = 8
    layer_rates: Literal["decay", "steps", "equal"] = "decay"
    layer_decay: Annotated[float, Field(gt=0, le=1)] = 0.75
    rates: Annotated[tuple[Rate, ...], Len(1)] = (1e-4, 3e-4, 1e-3)
    epochs: Positive = 20
    seeds: Repeats = 3
    seed: Seed = 0
    parts: Positive = 4
    batch_size: Positive = 32
    micro_batch: Positive = 8
    weight_decay: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1e-3
    device: Device = "auto"

    def variant(self, mode: Mode) -> str:
        """Return the name of a trained part: the mode, then each option that changes its networks and is not at its default.

        Two settings are thus two results, such as `lora` and `lora.rank=4`. The device is in the names of checkpoints alone.
        """
        options = [one.name for one in fields(FinetuneRecipe) if one.name not in ("modes", "device")]
        names, default = [name for name in options if mode in ONLY_OF.get(name, MODES)], FinetuneRecipe()
        changed = {name: getattr(self, name) for name in names if getattr(self, name) != getattr(default, name)}
        return ".".join([mode, *(f"{name}={_text(value)}" for name, value in changed.items())])


def mode_of(variant: str) -> Mode:
    """Return the trained part that a variant names."""
    return cast(Mode, variant.partition(".")[0])


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
