"""Synthetic checkpoints in the published containers."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from cardiobench.models.families.st_mem import network as nets_st_mem
from tests.models.drawn import State, published_blocks, random_state
from tests.models.family import Family


def st_mem(folder: Path, change: Callable[[State], None] = lambda state: None) -> Path:
    """Write `st_mem_vit_base_encoder.pth`: tensors under `model` with the names of the published code."""
    state = random_state(nets_st_mem.StMem)
    change(state)
    torch.save({"model": published_blocks(state)}, folder / "st_mem_vit_base_encoder.pth")
    return folder


def st_mem_full(folder: Path) -> Path:
    """Write `st_mem_vit_base_full.pth`: the encoder under `encoder.`, its first layers a second time, and a decoder."""
    state = published_blocks(random_state(nets_st_mem.StMem))
    both = {f"encoder.{key}": tensor for key, tensor in state.items()}
    both |= {key: tensor for key, tensor in state.items() if key.startswith("to_patch_embedding.")}
    decoder = {"mask_embedding": torch.zeros(256), "decoder_blocks.0.attn.norm.weight": torch.ones(256)}
    torch.save({"model": both | decoder}, folder / "st_mem_vit_base_full.pth")
    return folder


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Use one block."""
    patch.setattr(nets_st_mem, "DEPTH", 1)


NAME = "vuno/ST-MEM"
FAMILY = Family(
    checkpoints={NAME: st_mem},
    defaults={NAME: ("mean", "crops")},
    shrink=shrink,
    tensors={NAME: ("st_mem_vit_base", "")},
    encoder_files={NAME: st_mem},
    parts={NAME: (12, 2250)},
    large=True,
)
