"""Synthetic checkpoints in the published containers."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

from cardiobench.models.blocks import xresnet1d
from cardiobench.models.families.ked import network as ked_queries
from tests.models.drawn import State, random_state, small_bert, write_vocabulary
from tests.models.family import Family


def ked(folder: Path, change: Callable[[State], None] = lambda state: None, whole: bool = False) -> Path:
    """Write `best_valid_all_increase_with_augment_epoch_3.pt`: three networks under one name each, settings and optimiser.

    Decoder and text encoder have the size in the settings only with `whole`, which also adds a vocabulary.
    """
    encoder = random_state(xresnet1d.XResNet1d101)
    encoder["0.0.weight"] = 16 * encoder["0.0.weight"]  # Otherwise, the biases of 33 bottlenecks dominate the signal.
    change(encoder)
    content = {
        "model": {"decoder_norm.weight": torch.ones(768)},
        "ecg_model": with_second_names(encoder),
        "text_encoder": {"logit_scale": torch.tensor(2.66)},
        "optimizer": {"state": {0: {"step": 3}}, "param_groups": [{"lr": 5e-5, "params": [0]}]},
        "lr_scheduler": {"t_initial": 20},
        "config": {"batch_size": 80, "ecg_model_name": "xresnet1d_101"},
        "epoch": 3,
    }
    if whole:
        decoder = random_state(ked_queries.KedDecoder)
        norms = {f"decoder.norm.{kind}": decoder[f"decoder_norm.{kind}"] for kind in ("weight", "bias")}
        content |= {"model": decoder | norms, "text_encoder": random_state(ked_queries.KedText)}
        write_vocabulary(folder, ked_queries.bert_config().vocab_size)
    torch.save(content, folder / "best_valid_all_increase_with_augment_epoch_3.pt")
    return folder


def with_second_names(encoder: State) -> State:
    """Return the convolution tensors of a bottleneck under both of their published names."""
    return encoder | {name.replace(".convs.", ".convpath.0."): tensor for name, tensor in encoder.items()}


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Use one layer of the decoder and a small BERT."""
    patch.setattr(ked_queries, "LAYERS", 1)
    patch.setattr(ked_queries, "bert_config", small_bert)


NAME = "control-spiderman/ECGFM-KED"
FAMILY = Family(
    checkpoints={NAME: partial(ked, whole=True)},
    defaults={NAME: ("mean", "mimic_order")},
    shrink=shrink,
    encoder_files={NAME: ked},
    parts={NAME: (12, 1000)},
)
