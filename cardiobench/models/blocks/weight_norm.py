"""Names of the parameters of a weight norm in checkpoints of older and newer PyTorch versions."""

from collections.abc import Mapping

import torch


def current_weight_norm(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Rename weights to the names of `torch.nn.utils.parametrizations.weight_norm`, given old or new names."""
    inside = ".parametrizations.weight.original"
    return {
        key.replace(".weight_g", f"{inside}0").replace(".weight_v", f"{inside}1"): tensor
        for key, tensor in state.items()
    }
