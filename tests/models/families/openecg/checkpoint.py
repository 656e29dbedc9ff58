"""Synthetic checkpoints in the container of the package."""

from collections.abc import Callable
from pathlib import Path

import torch

from cardiobench.models.families.openecg import network as openecg
from tests.models.drawn import State, random_state
from tests.models.family import Family

NAME, UNTRAINED = "vitaldb/openecg-codec-v6", "cardiobench/random-openecg"


def published_name(key: str) -> str:
    """Return the name in the package of one of our weights."""
    if not key.startswith("blocks."):
        return key
    _, number, rest = key.split(".", 2)
    for theirs, ours in openecg.RENAMED.items():
        if rest.startswith(ours):
            return f"upper_transformer.layers.{number}.{theirs}{rest.removeprefix(ours)}"
    raise ValueError(key)


def codec(folder: Path, change: Callable[[State], None] = lambda state: None) -> Path:
    """Write `codec_v6.pt`: tensors under `model_state`, and settings of the training."""
    state = random_state(openecg.OpenEcgCodec) | {"pos_enc": openecg.positions()}
    change(state)
    named = {published_name(key): tensor for key, tensor in state.items()}
    torch.save({"model_state": named, "model_config": {"patch_size": 10}, "epoch": 3}, folder / "codec_v6.pt")
    return folder


FAMILY = Family(
    checkpoints={NAME: codec},
    defaults={NAME: ("mean", ""), UNTRAINED: ("mean", "seed_0")},
    encoder_files={NAME: codec},
    parts={NAME: (4, 5000)},
    leads={NAME: ("I", "II", "V1", "V5")},
)
