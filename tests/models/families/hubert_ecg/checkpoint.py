"""Synthetic checkpoints in the published containers."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import save_file

from cardiobench.models.families.hubert_ecg import network as hubert_ecg
from tests.models.drawn import (
    State,
    random_state,
)
from tests.models.family import Family

TINY_HUBERT = {
    **{key: list(value) if isinstance(value, tuple) else value for key, value in hubert_ecg.COMMON.items()},
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "model_type": "hubert_ecg",
    "auto_map": {"AutoModel": "hubert_ecg.HuBERTECG"},
    "hidden_dropout": 0.5,
    "attention_dropout": 0.5,
}


def hubert(folder: Path, change: Callable[[State], None] = lambda state: None) -> Path:
    """Write `model.safetensors` and `config.json` of a small HuBERT-ECG with its pretraining heads."""
    state = random_state(partial(hubert_ecg.build, TINY_HUBERT))
    state |= {
        "final_proj.0.weight": torch.zeros(16, 64),
        "final_proj.0.bias": torch.zeros(16),
        "label_embedding.0.weight": torch.zeros(100, 16),
    }
    change(state)
    save_file({name: tensor.clone() for name, tensor in state.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(TINY_HUBERT))
    return folder


def full_size(size: str, folder: Path) -> Path:
    """Write `model.safetensors` and `config.json` of a published size."""
    config = {**TINY_HUBERT, **hubert_ecg.SIZES[size]}
    state = random_state(lambda: hubert_ecg.build(config))
    save_file({name: tensor.clone() for name, tensor in state.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    return folder


NAME = "Edoardo-BS/hubert-ecg-small"
NAMES = (NAME, "Edoardo-BS/hubert-ecg-base", "Edoardo-BS/hubert-ecg-large")
FAMILY = Family(
    checkpoints=dict.fromkeys(NAMES, hubert),
    defaults=dict.fromkeys(NAMES, ("mean", "first")),
    tensors={"Edoardo-BS/hubert-ecg-base": ("hubert_ecg_small", "")},
    encoder_files={NAME: hubert},
    parts={NAME: (6000,)},
    full_size={f"Edoardo-BS/hubert-ecg-{size}": partial(full_size, size) for size in hubert_ecg.SIZES},
)
