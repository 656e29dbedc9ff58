"""Choice of the trained part of a network and of its learning rates: all of it, its last blocks, or LoRA adapters."""

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
"""Part of the names of the parameters that `peft` adds."""
LINEAR = (torch.nn.Linear, torch.nn.MultiheadAttention)
CONVOLUTION = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)
LATE, EARLY = 0.1, 0.01
"""Learning rates of the later and the earlier half of the blocks, as parts of that of the head (arXiv:2509.25095)."""


def adapt(network: FinetunedNetwork, structure: Structure, mode: Mode, recipe: FinetuneRecipe, name: str) -> None:
    """Say which parameters of a network are trained, beside the head; LoRA adds its own.

    Args:
        network: Network, of which nothing is trained yet.
        structure: Structure of the network.
        mode: Trained part.
        recipe: Options.
        name: Name of the model, for messages.

    Raises:
        NotApplicable: There are not so many blocks, or no layer that LoRA could adapt.
    """
    if mode == "lora":
        add_adapters(network, lora_targets(network, structure, name), recipe.rank)
        return
    first = 0
    if mode == "last":
        first = structure.blocks + 1 - recipe.blocks
        if first < 1:
            raise NotApplicable(
                f"the network of {name} has {structure.blocks} blocks, and {recipe.blocks} are to be trained"
            )
    for key, parameter in network.named_parameters():
        parameter.requires_grad_(key.startswith(HEAD) or structure.depth.get(key, -1) >= first)


def lora_targets(network: FinetunedNetwork, structure: Structure, name: str) -> list[str]:
    """Return the layers that LoRA adapts, by their type: linear ones and attention, and convolutions that hold most parameters.

    Raises:
        NotApplicable: There is none.
    """
    found: dict[type, list[str]] = {}
    sizes: dict[type, int] = {}
    for key, module in network.named_modules():
        reached = key in structure.called and any(name.startswith(f"{key}.") for name in structure.depth)
        if not reached or key.count(".") < 2:  # A network that is one layer.
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
    """Return whether `peft` can adapt a layer: not one whose weight is computed, is in groups or is in three parts."""
    whole = getattr(module, "_qkv_same_embed_dim", True)
    return whole and getattr(module, "groups", 1) == 1 and not is_parametrized(module)


def add_adapters(network: FinetunedNetwork, targets: Sequence[str], rank: int) -> None:
    """Add LoRA adapters to layers; nothing else but the head is trained then."""
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
    """Put the very weights of an adapted attention back after each pass: `peft` adds and subtracts, which rounds them."""
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
    """Return the groups of trained parameters, by their learning rate."""
    groups: dict[float, list[torch.nn.Parameter]] = {}
    for key, parameter in network.named_parameters():
        if parameter.requires_grad:
            groups.setdefault(factor(structure.depth.get(key), structure.blocks, recipe), []).append(parameter)
    return [
        {"params": chosen, "lr": rate * part, "weight_decay": recipe.weight_decay} for part, chosen in groups.items()
    ]


def factor(depth: int | None, blocks: int, recipe: FinetuneRecipe) -> float:
    """Return the learning rate at a depth as a part of that of the head; 1 for the head and for adapters, whose depth is None."""
    if depth is None or recipe.layer_rates == "equal":
        return 1.0
    if recipe.layer_rates == "decay":
        return recipe.layer_decay ** (blocks + 1 - depth)
    return LATE if depth > blocks / 2 else EARLY
