"""Synthetic checkpoints in the published containers."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from cardiobench.models.blocks import net1d
from tests.models.drawn import State, random_state
from tests.models.family import Family


def ecgfounder(folder: Path, change: Callable[[State], None] = lambda state: None) -> Path:
    """Write `12_lead_ECGFounder.pth`: tensors under `state_dict`, and other objects of the training."""
    state = random_state(net1d.Net1D)
    change(state)
    torch.save({"state_dict": state, "epoch": 7, "step": 100}, folder / "12_lead_ECGFounder.pth")
    return folder


def ecgfounder_one_lead(folder: Path) -> Path:
    """Write `1_lead_ECGFounder.pth`: the same network with one input channel."""
    torch.save({"state_dict": random_state(partial(net1d.Net1D, leads=1))}, folder / "1_lead_ECGFounder.pth")
    return folder


NAME = "PKUDigitalHealth/ECGFounder"
FAMILY = Family(
    checkpoints={NAME: ecgfounder},
    defaults={NAME: ("mean", "filtered")},
    tensors={NAME: ("ecgfounder_net1d_12lead", "")},
    encoder_files={NAME: ecgfounder},
    parts={NAME: (12, 5000)},
)
