"""Synthetic checkpoints in the published containers."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from cardiobench.models.families.ecg_jepa_weimann import network as ecg_jepa_weimann
from tests.models.drawn import State, random_state
from tests.models.family import Family


def jepa_weimann(folder: Path, change: Callable[[State], None] = lambda state: None, size: str = "XS") -> Path:
    """Write a pretraining checkpoint: three networks under `model`, the settings as a plain mapping, and the optimiser."""
    target = random_state(partial(ecg_jepa_weimann.EcgJepaWeimann, size))
    change(target)
    state = {f"target_encoder.{name}": tensor for name, tensor in target.items()}
    state |= {f"encoder.{name}": tensor for name, tensor in target.items()}
    state["predictor.norm.weight"] = torch.ones(192)
    content = {"model": state, "optimizer": {"state": {}, "param_groups": [{"lr": 1e-3}]}, "config": {"dim": 192}}
    torch.save({**content, "step": 100_000}, folder / "ecg_jepa_weimann.pt")
    return folder


NAME = "kweimann/ECG-JEPA"
FAMILY = Family(
    checkpoints={NAME: jepa_weimann},
    defaults={NAME: ("mean", "per_record")},
    tensors={NAME: ("ecg_jepa_weimann_vits", "target_encoder.")},
    encoder_files={NAME: jepa_weimann},
    parts={NAME: (12, 5000)},
    several_sizes=(NAME,),
)
