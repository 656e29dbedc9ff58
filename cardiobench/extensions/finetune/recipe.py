"""Define the options of fine-tuning."""

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
"""Options that only affect some of the trained parts."""
Rate = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


@dataclass(frozen=True)
class FinetuneRecipe:
    """Trained part, learning rates and training budget.

    Attributes:
        modes: Trained parts, one result each: "full" trains all parameters that affect the vector, "last" the last
            blocks and the layers after them, "lora" low-rank adapters (package `peft`) with frozen model weights.
        blocks: Number of blocks that "last" trains.
        rank: Rank of the LoRA adapters.
        layer_rates: Layer-wise learning rates: "decay" multiplies by `layer_decay` per block before the head (as in
            BEiT and MAE); "steps" uses a tenth in the later and a hundredth in the earlier half (arXiv:2509.25095);
            "equal" uses one rate. Adapters use the rate of the head.
        layer_decay: Factor per block for "decay".
        rates: Candidate learning rates of the head, selected on validation patients.
        epochs: Number of epochs per run.
        seeds: Number of runs per learning rate.
        seed: First random seed.
        parts: Maximum number of parts (frames or windows) per recording in a training step; predictions use all parts.
        batch_size: Number of recordings per step.
        micro_batch: Number of recordings in memory at once; gradients are accumulated over the batch.
        weight_decay: Weight decay of AdamW.
        device: Training device; by default the device of the run (`--device`).
    """

    modes: Annotated[tuple[Mode, ...], Len(1)] = MODES[:1]
    blocks: Positive = 2
    rank: Annotated[int, Field(ge=1, le=1024)] = 8
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
        """Return the variant name: the mode and all non-default options that change its networks.

        Different settings therefore have different results, such as `lora` and `lora.rank=4`. The device only appears
        in checkpoint names.
        """
        options = [one.name for one in fields(FinetuneRecipe) if one.name not in ("modes", "device")]
        names, default = [name for name in options if mode in ONLY_OF.get(name, MODES)], FinetuneRecipe()
        changed = {name: getattr(self, name) for name in names if getattr(self, name) != getattr(default, name)}
        return ".".join([mode, *(f"{name}={_text(value)}" for name, value in changed.items())])


def mode_of(variant: str) -> Mode:
    """Return the trained part of a variant."""
    return cast(Mode, variant.partition(".")[0])


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
