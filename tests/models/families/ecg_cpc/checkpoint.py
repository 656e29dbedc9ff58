"""Synthetic checkpoints in the published containers."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from cardiobench.models.families.ecg_cpc import network as nets_ecg_cpc
from tests.models.drawn import State, pretended_classes, pretended_omegaconf, random_state
from tests.models.family import Family


def ecg_cpc(folder: Path, change: Callable[[State], None] = lambda state: None) -> Path:
    """Write `last_11597276.ckpt`: a Lightning checkpoint whose settings contain omegaconf objects and custom classes."""
    state = random_state(nets_ecg_cpc.EcgCpc) | kernel_tables()
    state["layers.0.0.weight"] = 16 * state["layers.0.0.weight"]  # Otherwise, norm biases dominate.
    change(state)
    convolutions, layers = nets_ecg_cpc.PLACES
    state = {(convolutions if key.startswith("layers.") else layers) + key: tensor for key, tensor in state.items()}
    state[f"{nets_ecg_cpc.HEAD}proj.0.weight"] = torch.zeros(512, 512)
    with pretended_omegaconf() as settings, pretended_classes() as dress:
        config = dress("clinical_ts.ts.encoder.RNNEncoderConfig", type("Config", (), {}))()
        config.features = [512] * 4
        content = {
            "state_dict": state, "epoch": 1, "global_step": 230_000, "pytorch-lightning_version": "2.5.2",
            "hyper_parameters": {"trainer": settings, "ts": config}, "optimizer_states": [], "loops": {"fit_loop": {}},
        }  # fmt: skip
        torch.save(content, folder / "last_11597276.ckpt")
    return folder


def kernel_tables() -> State:
    """Return state matrices, steps and frequencies of a new network, stored as views of one row as in the published code."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        fresh = nets_ecg_cpc.EcgCpc().state_dict()
    once = {name: tensor[..., :1, :, :] for name, tensor in fresh.items() if name.endswith((".w", ".B", ".P", ".Q"))}
    views = {name: tensor.clone().expand_as(fresh[name]) for name, tensor in once.items()}
    return views | {name: tensor for name, tensor in fresh.items() if name.endswith((".omega", ".z", ".log_dt"))}


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Use one S4 layer."""
    patch.setattr(nets_ecg_cpc, "LAYERS", 1)


NAME = "AI4HealthUOL/ECG-CPC"
FAMILY = Family(
    checkpoints={NAME: ecg_cpc},
    defaults={NAME: ("mean", "")},
    shrink=shrink,
    tensors={NAME: ("ecg_cpc", "")},
    encoder_files={NAME: ecg_cpc},
    parts={NAME: (12, 2400)},
    large=True,
)
