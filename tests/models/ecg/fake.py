"""Synthetic checkpoints of the ECG models in their published containers, full-size for models with a single size.

Large tensors are views of one block of random numbers, so that a file of a few megabytes holds a full-size network.
"""

import json
import math
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import save_file

from cardiobench.models.blocks import net1d, xresnet1d
from cardiobench.models.blocks.vit_block import RENAMED
from cardiobench.models.families.ecg_cpc import network as nets_ecg_cpc
from cardiobench.models.families.ecg_fm import network as wav2vec2_cmsc
from cardiobench.models.families.ecg_jepa_kim import network as ecg_jepa_kim
from cardiobench.models.families.ecg_jepa_weimann import network as ecg_jepa_weimann
from cardiobench.models.families.hubert_ecg import network as hubert_ecg
from cardiobench.models.families.ked import network as ked_queries
from cardiobench.models.families.merl import network as nets_merl
from cardiobench.models.families.merl.text_network import MerlText
from cardiobench.models.families.st_mem import network as nets_st_mem
from tests.models.tiny import WORDS

State = dict[str, torch.Tensor]

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


DRAWN: dict[tuple[tuple[tuple[str, torch.Size], ...], int], State] = {}


def random_state(build: Callable[[], torch.nn.Module], seed: int = 0) -> State:
    """Return a value for every tensor of a network: norms near 1, biases near 0, weights scaled by the number of inputs.

    The tensors are drawn once per process: replace tensors in the table, but do not modify them in place.
    """
    with torch.device("meta"):
        empty = build().state_dict()
    key = tuple((name, tensor.shape) for name, tensor in empty.items()), seed
    if key not in DRAWN:
        DRAWN[key] = _draw(empty, seed)
    return dict(DRAWN[key])


def _draw(empty: State, seed: int) -> State:
    generator = torch.Generator().manual_seed(seed)
    largest = max(tensor.numel() for tensor in empty.values())
    scales = sorted({_scale(name, tensor) for name, tensor in empty.items() if tensor.dim() > 1})
    # Draw one block per scale (a power of two), as long as the largest tensor of that scale.
    blocks = {}
    for scale in scales:
        longest = max(
            tensor.numel() for name, tensor in empty.items() if tensor.dim() > 1 and _scale(name, tensor) == scale
        )
        blocks[scale] = torch.empty(min(longest, largest)).normal_(0, scale, generator=generator)
    state = {}
    for name, tensor in empty.items():
        if not tensor.is_floating_point():
            state[name] = torch.zeros(tensor.shape, dtype=tensor.dtype)
        elif tensor.dim() > 1:
            block = blocks[_scale(name, tensor)]
            start = int(torch.randint(block.numel() - tensor.numel() + 1, (), generator=generator))
            state[name] = block[start : start + tensor.numel()].view(tensor.shape)
        else:
            gain = name.endswith("weight") or name.endswith("running_var")
            state[name] = float(gain) + 0.1 * torch.empty(tensor.shape).normal_(generator=generator)
    return state


def _scale(name: str, tensor: torch.Tensor) -> float:
    if name.endswith("original0"):
        return 2.0
    return 2.0 ** round(math.log2(1 / math.sqrt(tensor[0].numel())))


def ecgfounder(folder: Path, change: Callable[[State], None] = lambda state: None) -> Path:
    """Write `12_lead_ECGFounder.pth`: tensors under `state_dict`, and other objects of the training."""
    state = random_state(net1d.Net1D)
    change(state)
    torch.save({"state_dict": state, "epoch": 7, "step": 100}, folder / "12_lead_ECGFounder.pth")
    return folder


def ecgfounder_one_lead(folder: Path) -> Path:
    """Write `1_lead_ECGFounder.pth`: the same network with one input channel."""
    torch.save({"state_dict": random_state(partial(net1d.Net1D, leads=1))}, folder / "1_lead_ECGFounder.pth")
    return folder


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


def jepa_kim(folder: Path, change: Callable[[State], None] = lambda state: None) -> Path:
    """Write `multiblock_epoch100.pth`: tensors under `encoder`, and other objects of the training."""
    state = {**random_state(ecg_jepa_kim.EcgJepaKim), "pos_embed": ecg_jepa_kim.positions()}
    change(state)
    torch.save({"encoder": state, "epoch": 100, "loss": 0.1}, folder / "multiblock_epoch100.pth")
    return folder


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


def published_blocks(state: State) -> State:
    """Map our names to those in the code of ST-MEM and MERL."""
    theirs = {ours: name for name, ours in RENAMED.items()}

    def published(key: str) -> str:
        parts = re.fullmatch(r"blocks\.(\d+)\.(.+)\.(weight|bias)", key)
        return f"block{parts[1]}.{theirs.get(parts[2], parts[2])}.{parts[3]}" if parts else key

    return {published(key): tensor for key, tensor in state.items()}


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


def write_vocabulary(folder: Path, size: int) -> None:
    """Write `vocab.txt` of a BERT with this many words, including those of the test prompts."""
    words = list(dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    words += [f"[unused{number}]" for number in range(size - len(words))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")


# Mapping from model to the function that writes its checkpoint into a folder.
FAKES: dict[str, Callable[..., Path]] = {
    "PKUDigitalHealth/ECGFounder": ecgfounder,
    "wanglab/ecg-fm": ecg_fm,
    "Edoardo-BS/hubert-ecg-small": hubert,
    "kweimann/ECG-JEPA": jepa_weimann,
    "sehunfromdaegu/ECG_JEPA": jepa_kim,
    "control-spiderman/ECGFM-KED": ked,
    "vuno/ST-MEM": st_mem,
    "AI4HealthUOL/ECG-CPC": ecg_cpc,
    "cheliu-computation/MERL-resnet18": partial(merl, "res18"),
    "cheliu-computation/MERL-vit-tiny": partial(merl, "vit_tiny"),
}


@contextmanager
def pretended_classes() -> Iterator[Callable[[str, type], type]]:
    """Save classes under the names of other modules, which are removed afterwards, as if they were not installed."""
    known = set(sys.modules)

    def dress(name: str, kind: type) -> type:
        module, _, own = name.rpartition(".")
        kind.__module__, kind.__qualname__, kind.__name__ = module, own, own
        parts = module.split(".")
        for depth in range(1, len(parts) + 1):
            sys.modules.setdefault(".".join(parts[:depth]), types.ModuleType(module))
        setattr(sys.modules[module], own, kind)
        return kind

    try:
        yield dress
    finally:
        for module in set(sys.modules) - known:
            del sys.modules[module]


@contextmanager
def pretended_omegaconf() -> Iterator[object]:
    """Return settings whose classes have the names of omegaconf's."""

    @dataclass
    class Metadata:
        ref_type: typing.Any = typing.Any
        object_type: typing.Any = dict
        flags: dict = field(default_factory=dict)

    class Node:
        def __init__(self, content: object):
            self._content, self._metadata = content, metadata()

    with pretended_classes() as dress:
        metadata = dress("omegaconf.base.ContainerMetadata", Metadata)
        names = ("omegaconf.dictconfig.DictConfig", "omegaconf.listconfig.ListConfig", "omegaconf.nodes.AnyNode")
        table, row, value = (dress(name, type("Node", (Node,), {})) for name in names)
        yield table({"lr": value(1e-4), "layers": row([value(1), value(2)]), "_name": value("wav2vec2_cmsc")})
