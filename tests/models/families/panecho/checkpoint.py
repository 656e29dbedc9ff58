"""Synthetic checkpoints in the published containers."""

from functools import partial
from pathlib import Path

import pytest
import torch

from cardiobench.models.families.panecho import network
from cardiobench.models.families.panecho.network import PanEcho
from tests.models.drawn import drawn_state, small_convnext
from tests.models.family import Family


def panecho_file(folder: Path, change=lambda state: None) -> Path:
    """Write `panecho.pt`: tensors under the key `weights`, with heads that give plausible numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    state = drawn_state(PanEcho, seed=2)
    for name, number in {"EF": 55.0, "LVIDd": 4.6, "IVSd": 1.1, "LVPWd": 1.0}.items():
        state[f"{name}_head.1.bias"] = torch.tensor([number])
    change(state)
    torch.save({"weights": state}, folder / "panecho.pt")
    return folder / "panecho.pt"


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Use a small ConvNeXt."""
    patch.setattr(network, "convnext_tiny", partial(small_convnext, 768))


NAME = "CarDS-Yale/PanEcho"
FAMILY = Family(
    checkpoints={NAME: panecho_file},
    defaults={NAME: ("mean", "four_clips")},
    shrink=shrink,
    tensors={NAME: ("panecho", "")},
)
