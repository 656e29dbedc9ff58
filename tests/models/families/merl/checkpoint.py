"""Synthetic checkpoints in the published containers."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

from cardiobench.models.families.merl import network as nets_merl
from cardiobench.models.families.merl import text_network as merl_text
from cardiobench.models.families.merl.text_network import MerlText
from tests.models.drawn import State, published_blocks, random_state, small_bert, write_vocabulary
from tests.models.family import Family


def merl(
    size: str,
    folder: Path,
    change: Callable[[State], None] = lambda state: None,
    whole: bool = False,
) -> Path:
    """Write `*_best_encoder.pth` with an untrained head; `whole` adds `*_best_ckpt.pth` and a vocabulary."""
    build, unused = {
        "res18": (
            nets_merl.MerlResNet18Shared,
            {"linear.weight": torch.zeros(10, 512), "linear.bias": torch.zeros(10)},
        ),
        "vit_tiny": (nets_merl.MerlVitTinyShared, {}),
    }[size]
    state = random_state(build)
    encoder = {
        name.removeprefix("ecg_encoder."): tensor for name, tensor in state.items() if name.startswith("ecg_encoder.")
    }
    heads = {name: tensor for name, tensor in state.items() if not name.startswith("ecg_encoder.")}
    change(encoder)
    published = published_blocks(encoder) | unused
    torch.save(published, folder / f"{size}_best_encoder.pth")
    if not whole:
        return folder
    text = random_state(MerlText) | {"lm_model.embeddings.position_ids": torch.arange(512)[None]}
    losses = {f"linear{place}.weight": torch.zeros(256, 256) for place in (1, 2)}
    content = {f"ecg_encoder.{name}": tensor for name, tensor in published.items()} | heads | text | losses
    torch.save(content, folder / f"{size}_best_ckpt.pth")
    known = text["lm_model.embeddings.word_embeddings.weight"].shape[0]
    write_vocabulary(folder, known)
    return folder


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Use one block and a small BERT."""
    patch.setattr(nets_merl, "VIT_DEPTH", 1)
    patch.setattr(merl_text, "bert_config", small_bert)


FILES = {
    "cheliu-computation/MERL-resnet18": partial(merl, "res18"),
    "cheliu-computation/MERL-vit-tiny": partial(merl, "vit_tiny"),
}
FAMILY = Family(
    checkpoints={name: partial(write, whole=True) for name, write in FILES.items()},
    defaults=dict.fromkeys(FILES, ("mean", "encoder")),
    shrink=shrink,
    encoder_files=FILES,
    parts=dict.fromkeys(FILES, (12, 5000)),
    normed=("cheliu-computation/MERL-vit-tiny",),
)
