"""Fixed training recipes of networks trained from scratch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Recipe:
    """Network and training recipe of one model card.

    Attributes:
        modality: "ecg" or "echo".
        window: Number of samples or frames in the network's input.
        epochs: Number of epochs.
        batch_size: Number of recordings per step.
        micro_batch: Number of recordings in memory at once.
        build: Function (outputs, time) -> network; `time` is False if all recordings are stills.
        learning_rate: Constant learning rate of AdamW.
        weight_decay: Weight decay of AdamW.
    """

    modality: str
    window: int
    epochs: int
    batch_size: int
    micro_batch: int
    build: "Callable[[int, bool], torch.nn.Module]"
    learning_rate: float = 1e-3
    weight_decay: float = 1e-3


def _s4(outputs: int, time: bool) -> "torch.nn.Module":
    from cardiobench.models.blocks.s4 import S4Classifier

    return S4Classifier(outputs)


def _net1d(outputs: int, time: bool) -> "torch.nn.Module":
    from cardiobench.models.blocks.net1d import Net1D

    return Net1D(classes=outputs)


def _small(outputs: int, time: bool) -> "torch.nn.Module":
    from cardiobench.extensions.scratch.networks.resnet1d import ResNet1d

    return ResNet1d(outputs)


def _r2plus1d(outputs: int, time: bool) -> "torch.nn.Module":
    from cardiobench.extensions.scratch.networks.r2plus1d import R2Plus1d

    return R2Plus1d(outputs, time=time)


RECIPES = {
    "s4": Recipe("ecg", 250, 100, 64, 32, _s4),
    "net1d": Recipe("ecg", 1250, 100, 64, 16, _net1d),
    "small": Recipe("ecg", 250, 100, 64, 64, _small),
    "r2plus1d": Recipe("echo", 16, 50, 32, 8, _r2plus1d),
}
"""Mapping from network name to recipe. ECG networks follow the supervised recipe of arXiv:2509.25095: AdamW with a
constant rate for 100 epochs, one random 2.5 s crop per record and epoch, and no other augmentation."""
PREFIX = "cardiobench/scratch-"


def card_of(network: str) -> str:
    """Return the name of a network's model card."""
    return f"{PREFIX}{network}"


def recipe_of(model: str) -> Recipe:
    """Return the recipe for a model card name."""
    return RECIPES[model.removeprefix(PREFIX)]
