"""EfficientNet-Lite0 (Tan and Le, arXiv:1905.11946, without squeeze and excitation) as timm builds it, with the names of its package."""

import re
from collections.abc import Mapping

import timm
import torch

ARCHITECTURE = "tf_efficientnet_lite0"
STAGES = (1, 2, 2, 3, 3, 4, 1)
"""Blocks of each stage; the package counts them through."""
OUTSIDE = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2", "_fc": "classifier"}
FIRST = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}
"""Names in the only block of the first stage, which does not expand its channels."""
LATER = {
    "_expand_conv": "conv_pw",
    "_bn0": "bn1",
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn2",
    "_project_conv": "conv_pwl",
    "_bn2": "bn3",
}
PLACES = [(stage, block) for stage, count in enumerate(STAGES) for block in range(count)]


def build() -> torch.nn.Module:
    """Build the network with its classifier of 1000 classes."""
    return timm.create_model(ARCHITECTURE)


def published_keys(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Rename the weights of the package to the names of timm."""
    return {_renamed(key): tensor for key, tensor in state.items()}


def _renamed(key: str) -> str:
    block = re.fullmatch(r"_blocks\.(\d+)\.(\w+)\.(\w+)", key)
    if block and int(block[1]) < len(PLACES):
        stage, place = PLACES[int(block[1])]
        name = (LATER if stage else FIRST).get(block[2], block[2])
        return f"blocks.{stage}.{place}.{name}.{block[3]}"
    module, _, tensor = key.partition(".")
    return f"{OUTSIDE.get(module, module)}.{tensor}"
