"""Synthetic checkpoints in the published containers."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

from cardiobench.models.families.ecg_fm import network as wav2vec2_cmsc
from tests.models.drawn import State, pretended_omegaconf, random_state
from tests.models.family import Family


def ecg_fm(folder: Path, change: Callable[[State], None] = lambda state: None) -> Path:
    """Write `mimic_iv_ecg_physionet_pretrained.pt`: tensors under `model`, settings as omegaconf objects under `cfg`."""
    state = random_state(wav2vec2_cmsc.Wav2Vec2Cmsc)
    change(state)
    with pretended_omegaconf() as settings:
        content = {"args": None, "cfg": settings, "model": state, "extra_state": {"epoch": 3}}
        torch.save(content, folder / "mimic_iv_ecg_physionet_pretrained.pt")
    return folder


def ecg_fm_finetuned(folder: Path) -> Path:
    """Write `mimic_iv_ecg_finetuned.pt`: the encoder under `encoder.` and a linear head, without pretraining parts."""
    state = random_state(partial(wav2vec2_cmsc.Wav2Vec2Cmsc, pretraining=False))
    state = {f"encoder.{name}": tensor for name, tensor in state.items()}
    state |= {"proj.weight": torch.zeros(17, 768), "proj.bias": torch.zeros(17)}
    torch.save({"model": state}, folder / "mimic_iv_ecg_finetuned.pt")
    return folder


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Use one layer."""
    patch.setattr(wav2vec2_cmsc, "LAYERS", 1)


NAME = "wanglab/ecg-fm"
FAMILY = Family(
    checkpoints={NAME: ecg_fm},
    defaults={NAME: ("mean", "mean")},
    shrink=shrink,
    tensors={NAME: ("ecgfm_wav2vec2_cmsc_base", "")},
    encoder_files={NAME: ecg_fm},
    parts={NAME: (12, 2500)},
    large=True,
)
