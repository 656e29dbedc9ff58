"""Select the trainable part of a network (all, last blocks or LoRA) and its learning rates."""

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.utils.parametrize import is_parametrized

from cardiobench.core.errors import NotApplicable
from cardiobench.extensions.finetune.network import HEAD, FinetunedNetwork
from cardiobench.extensions.finetune.recipe import FinetuneRecipe, Mode
from cardiobench.extensions.finetune.structure import Structure

ADAPTER = "lora_"
"""Marker in the names of parameters that `peft` adds."""
LINEAR = (torch.nn.Linear, torch.nn.MultiheadAttention)
CONVOLUTION = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)
LATE, EARLY = 0.1, 0.01
"""Learning rates of the later and earlier half of the blocks, relative to the head (arXiv:2509.25095)."""


def adapt(network: FinetunedNetwork, structure: Structure, mode: Mode, recipe: FinetuneRecipe, name: str) -> None:
    """Mark the trainable parameters of a network; LoRA adds adapters.

    Args:
        network: Network with all parameters frozen.
        structure: Depths of the network's parameters.
        mode: Name of the trained part.
        recipe: Fine-tuning options.
        name: Model name for messages.

    Raises:
        NotApplicable: The network has too few blocks, or no layer that LoRA can adapt.
    """
    if mode == "lora":
        add_adapters(network, lora_targets(network, structure, name), recipe.rank)
        return
    first = 0
    if mode == "last":
        first = structure.blocks + 1 - recipe.blocks
        if first < 1:
            raise NotApplicable(
                f"the network of {name} has {structure.blocks} blocks, but training of {recipe.blocks} was requested"
            )
    for key, parameter in network.named_parameters():
        parameter.requires_grad_(key.startswith(HEAD) or structure.depth.get(key, -1) >= first)


def lora_targets(network: FinetunedNetwork, structure: Structure, name: str) -> list[str]:
    """Return the layers for LoRA: linear layers, attention, and convolutions if they hold most parameters.

    Raises:
        NotApplicable: No layer can be adapted.
    """
    found: dict[type, list[str]] = {}
    sizes: dict[type, int] = {}
    for key, module in network.named_modules():
        reached = key in structure.called and any(name.startswith(f"{key}.") for name in structure.depth)
        if not reached or key.count(".") < 2:  # The network is a single layer.
            continue
        for kind in (*LINEAR, *CONVOLUTION):
            if isinstance(module, kind) and _adaptable(module):
                found.setdefault(kind, []).append(key)
                sizes[kind] = sizes.get(kind, 0) + sum(one.numel() for one in module.parameters())
    of = {kinds: sum(sizes.get(kind, 0) for kind in kinds) for kinds in (LINEAR, CONVOLUTION)}
    kinds = LINEAR if of[LINEAR] >= of[CONVOLUTION] else (*LINEAR, *CONVOLUTION)
    targets = [key for kind in kinds for key in found.get(kind, [])]
    if not targets:
        raise NotApplicable(f"the network of {name} has no linear layer and no convolution that LoRA could adapt")
    return targets


def _adaptable(module: torch.nn.Module) -> bool:
    """Return whether `peft` can adapt a layer; computed, grouped and three-part weights are not supported."""
    whole = getattr(module, "_qkv_same_embed_dim", True)
    return whole and getattr(module, "groups", 1) == 1 and not is_parametrized(module)


def add_adapters(network: FinetunedNetwork, targets: Sequence[str], rank: int) -> None:
    """Add LoRA adapters; otherwise only the head is trained."""
    import peft

    attention = [key for key in targets if isinstance(network.get_submodule(key), torch.nn.MultiheadAttention)]
    config = peft.LoraConfig(r=rank, lora_alpha=rank, target_modules="|".join(map(re.escape, targets)))
    peft.inject_adapter_in_model(config, network)
    network.adapted = tuple(targets)
    for key in attention:
        _keep_weights(network.get_submodule(key))
    for key, parameter in network.named_parameters():
        parameter.requires_grad_(ADAPTER in key or key.startswith(HEAD))


def _keep_weights(layer: Any) -> None:
    """Restore exact attention weights after each pass, because `peft` rounds them by adding and subtracting."""
    attention = layer.get_base_layer()
    projection = attention.out_proj.get_base_layer()
    kept = ((attention, "in_proj_weight", attention.in_proj_weight), (projection, "weight", projection.weight))

    def restore(*_: Any) -> None:
        for module, name, weight in kept:
            module.register_parameter(name, weight)

    layer.register_forward_hook(restore)


def groups_of(
    network: FinetunedNetwork, structure: Structure, recipe: FinetuneRecipe, rate: float
) -> list[dict[str, Any]]:
    """Group trainable parameters by learning rate."""
    groups: dict[float, list[torch.nn.Parameter]] = {}
    for key, parameter in network.named_parameters():
        if parameter.requires_grad:
            groups.setdefault(factor(structure.depth.get(key), structure.blocks, recipe), []).append(parameter)
    return [
        {"params": chosen, "lr": rate * part, "weight_decay": recipe.weight_decay} for part, chosen in groups.items()
    ]


def factor(depth: int | None, blocks: int, recipe: FinetuneRecipe) -> float:
    """Return the learning rate at a depth relative to the head; 1 for the head and for adapters (depth None)."""
    if depth is None or recipe.layer_rates == "equal":
        return 1.0
    if recipe.layer_rates == "decay":
        return recipe.layer_decay ** (blocks + 1 - depth)
    return LATE if depth > blocks / 2 else EARLY
