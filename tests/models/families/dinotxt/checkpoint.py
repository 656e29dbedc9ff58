"""Synthetic checkpoints in the published containers."""

from functools import partial
from pathlib import Path

import pytest
import torch

from cardiobench.models.families.dinotxt import adapter as dinotxt
from cardiobench.models.families.dinotxt.network import DinoTxt
from tests.models.drawn import (
    drawn_state,
)
from tests.models.family import Family

SMALL_DINOTXT = {"dim": 32, "depth": 2, "heads": 2, "text_dim": 32, "text_depth": 2, "text_heads": 2}


def dinotxt_folder(folder: Path, change=lambda backbone, rest: None) -> Path:
    """Write both files of dino.txt for a small network: DINOv3's with its own key names, and the remaining tensors in the other."""
    folder.mkdir(parents=True, exist_ok=True)
    state = drawn_state(lambda: DinoTxt(**SMALL_DINOTXT), seed=4)
    for name, tensor in state.items():
        if name.endswith((".qkv.bias", ".bias_mask")):
            tensor.zero_()  # The published file has zeros here.
    state["visual_model.backbone.rope_embed.periods"] = 100.0 ** (torch.arange(4) / 4)
    state["logit_scale"] = torch.tensor([4.0])
    own = "visual_model.backbone."
    backbone = {name.removeprefix(own): tensor for name, tensor in state.items() if name.startswith(own)}
    rest = {name: tensor for name, tensor in state.items() if not name.startswith(own)}
    change(backbone, rest)
    torch.save(backbone, folder / dinotxt.BACKBONE[0])
    torch.save(rest, folder / dinotxt.HEADS[0])
    return folder


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Use a small network."""
    patch.setattr(dinotxt, "DinoTxt", partial(DinoTxt, **SMALL_DINOTXT))


def image_tower() -> tuple[torch.nn.Module, tuple[int, ...]]:
    """Return the image tower of full size and the shape of a frame."""
    return DinoTxt().visual_model, (1, 3, 224, 224)


NAME = "facebookresearch/dinotxt-vitl16"
FAMILY = Family(checkpoints={NAME: dinotxt_folder}, shrink=shrink, on_meta={NAME: image_tower})
