"""Synthetic checkpoints in the published containers."""

import sys
from functools import partial
from pathlib import Path

import pytest
import torch

from cardiobench.models.families.echofm import adapter, network
from cardiobench.models.families.echofm.network import EchoFM
from tests.models.drawn import drawn_state
from tests.models.family import Family

MODEL_ARGS = {
    "num_frames": 32,
    "t_patch_size": 4,
    "pred_t_dim": 8,
    "sep_pos_embed": True,
    "cls_embed": True,
    "norm_pix_loss": True,
}


def echofm_file(folder: Path, change=lambda state: None) -> Path:
    """Write `echofm_vitl.pth`: {"model": tensors, "model_args": settings}."""
    folder.mkdir(parents=True, exist_ok=True)
    state = drawn_state(EchoFM, seed=3)
    change(state)
    torch.save({"model": state, "model_args": MODEL_ARGS}, folder / "echofm_vitl.pth")
    return folder / "echofm_vitl.pth"


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Use one block of width 128."""
    shallow = partial(network.EchoFM, dim=128, heads=2, depth=1, decoder_depth=1)
    patch.setattr(adapter, "EchoFM", shallow)
    patch.setattr(adapter, "DIM", 128)
    patch.setattr(sys.modules[__name__], "EchoFM", shallow)


NAME = "sekeun/EchoFM"
FAMILY = Family(
    checkpoints={NAME: echofm_file},
    defaults={NAME: ("mean", "")},
    shrink=shrink,
    tensors={NAME: ("echofm_vitl", "")},
)
