"""Random weights in the containers of published checkpoints, and small networks for them."""

import math
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torchvision.models.convnext import CNBlockConfig, ConvNeXt

from cardiobench.models.blocks.vit_block import RENAMED
from tests.models.tiny import WORDS

State = dict[str, torch.Tensor]


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


def published_blocks(state: State) -> State:
    """Map our names to those in the code of ST-MEM and MERL."""
    theirs = {ours: name for name, ours in RENAMED.items()}

    def published(key: str) -> str:
        parts = re.fullmatch(r"blocks\.(\d+)\.(.+)\.(weight|bias)", key)
        return f"block{parts[1]}.{theirs.get(parts[2], parts[2])}.{parts[3]}" if parts else key

    return {published(key): tensor for key, tensor in state.items()}


def write_vocabulary(folder: Path, size: int) -> None:
    """Write `vocab.txt` of a BERT with this many words, including those of the test prompts."""
    words = list(dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    words += [f"[unused{number}]" for number in range(size - len(words))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")


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


def drawn_state(make, seed: int = 0) -> dict[str, torch.Tensor]:
    """Return a state dict of the network from `make`: matrices that preserve scale, gains near 1, small offsets."""
    with torch.device("meta"):
        shapes = {name: tensor.shape for name, tensor in make().state_dict().items()}
    generator = torch.Generator().manual_seed(seed)
    state = {}
    for name, shape in shapes.items():
        values = torch.empty(shape).normal_(generator=generator)
        if len(shape) > 1 and shape[1:].numel() > 1:
            state[name] = values.mul_(1 / shape[1:].numel() ** 0.5)
        else:
            state[name] = values.mul_(0.1).add_(1.0 if name.endswith("weight") else 0.0)
    return state


def small_convnext(width: int, num_classes: int = 1000) -> ConvNeXt:
    """Return a ConvNeXt of four blocks whose last stage has `width` channels."""
    widths = (16, 32, 64, width)
    return ConvNeXt(
        [CNBlockConfig(*pair, 1) for pair in zip(widths, (*widths[1:], None), strict=True)], num_classes=num_classes
    )


def small_bert():
    """Return a BERT configuration for the few words of echo prompts."""
    from transformers import BertConfig

    return BertConfig(
        vocab_size=200, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=48,
        layer_norm_eps=1e-12,
    )  # fmt: skip
