"""Synthetic checkpoints in the published containers."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from cardiobench.data.media.types import LEADS
from cardiobench.models.families.ecg_jepa_kim import network as ecg_jepa_kim
from tests.models.drawn import (
    State,
    random_state,
)
from tests.models.family import Family


def jepa_kim(folder: Path, change: Callable[[State], None] = lambda state: None) -> Path:
    """Write `multiblock_epoch100.pth`: tensors under `encoder`, and other objects of the training."""
    state = {**random_state(ecg_jepa_kim.EcgJepaKim), "pos_embed": ecg_jepa_kim.positions()}
    change(state)
    torch.save({"encoder": state, "epoch": 100, "loss": 0.1}, folder / "multiblock_epoch100.pth")
    return folder


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Use one block."""
    patch.setattr(ecg_jepa_kim, "DEPTH", 1)


NAME = "sehunfromdaegu/ECG_JEPA"
FAMILY = Family(
    checkpoints={NAME: jepa_kim},
    defaults={NAME: ("mean", "")},
    shrink=shrink,
    tensors={NAME: ("ecg_jepa_kim", "")},
    encoder_files={NAME: jepa_kim},
    parts={NAME: (8, 2500)},
    leads={NAME: ("I", "II", *LEADS[6:])},
    large=True,
)
