"""Synthetic checkpoints in the container of the package."""

from pathlib import Path

import torch

from cardiobench.models.families.efficientnet_lite0 import network
from tests.models.drawn import random_state
from tests.models.family import Family

NAME = "ml-illustrated/efficientnet-lite0"


def published_name(key: str) -> str:
    """Return the name in the package of one of timm's weights."""
    if not key.startswith("blocks."):
        module, _, tensor = key.partition(".")
        return f"{ {ours: theirs for theirs, ours in network.OUTSIDE.items()}[module] }.{tensor}"
    _, stage, place, module, tensor = key.split(".")
    names = network.LATER if int(stage) else network.FIRST
    theirs = {ours: theirs for theirs, ours in names.items()}[module]
    return f"_blocks.{network.PLACES.index((int(stage), int(place)))}.{theirs}.{tensor}"


def lite0(folder: Path) -> Path:
    """Write `efficientnet-lite0-57934424.pth`: tensors with the names of the package."""
    state = random_state(network.build)
    named = {published_name(key): tensor for key, tensor in state.items()}
    torch.save(named, folder / "efficientnet-lite0-57934424.pth")
    return folder


FAMILY = Family(checkpoints={NAME: lite0})
