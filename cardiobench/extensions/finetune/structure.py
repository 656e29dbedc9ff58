"""Find the parameters that affect a network's vectors, and the block of each."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from cardiobench.core.errors import BadModel, NotApplicable, one_line
from cardiobench.embeddings.cost import count_work

LATE = "makes layers at its first call, so their weights are not part of the loaded model. Make them when it is loaded"


@dataclass(frozen=True)
class Structure:
    """Parameters that affect the output vector.

    Attributes:
        depth: Mapping from parameter name to depth: 0 before the first block, k in block k or directly after it,
            `blocks` + 1 after the last block.
        blocks: Number of blocks that the network repeats.
        called: Names of the called modules, without those whose weights another module reads directly.
    """

    depth: Mapping[str, int]
    blocks: int
    called: frozenset[str]


def structure_of(network: torch.nn.Module, prefix: str, encode: Callable[[], torch.Tensor], name: str) -> Structure:
    """Find the structure of a network by encoding one part.

    Unused parameters, such as those of a text tower or an unused head, are excluded. Blocks are the members of module
    lists whose members contain submodules, such as transformer layers or residual units, in the order of use.

    Args:
        network: Module with a member `prefix`, the list of networks that hold the parameters.
        prefix: Name of that list.
        encode: Function that encodes one part.
        name: Model name for messages.

    Raises:
        NotApplicable: No parameter affects the vector, or no parameter receives a gradient.
    """
    called: set[str] = set()
    hooks = [
        module.register_forward_pre_hook(lambda *_, key=key: called.add(key)) for key, module in network.named_modules()
    ]
    try:
        used, _ = count_work(encode)
    except (BadModel, RuntimeError, TypeError) as error:
        raise _opaque(name, error) from None
    finally:
        for hook in hooks:
            hook.remove()
    if any(one.is_inference() for one in network.parameters()):
        raise NotApplicable(f"{name} {LATE}")
    by_id = {id(one): (key, one) for key, one in network.named_parameters()}
    named = dict(by_id[one] for one in used if one in by_id and by_id[one][1].is_floating_point())
    named = _reached(named, encode, name)
    blocks = [
        block
        for key, one in network.get_submodule(prefix).named_children()
        for block in _blocks(one, f"{prefix}.{key}")
    ]
    inside = {key: block for block in blocks for key in named if key.startswith(f"{block}.")}
    numbers: dict[str, int] = {}
    for key in named:
        if key in inside:
            numbers.setdefault(inside[key], len(numbers) + 1)
    depth, begun = {}, 0
    for key in named:
        begun = max(begun, numbers[inside[key]]) if key in inside else begun
        last = len(numbers) + 1 if begun == len(numbers) else begun
        depth[key] = numbers[inside[key]] if key in inside else last
    return Structure(depth, len(numbers), frozenset(called))


def _opaque(name: str, error: Exception) -> NotApplicable:
    """Return the error for a network without computable gradients."""
    return NotApplicable(f"the network of {name} cannot be traced ({one_line(error, 120)})")


def _reached(
    named: Mapping[str, torch.nn.Parameter], encode: Callable[[], torch.Tensor], name: str
) -> dict[str, torch.nn.Parameter]:
    """Return the parameters that receive gradients from the vectors."""
    wanted = {key: one.requires_grad for key, one in named.items()}
    try:
        for one in named.values():
            one.requires_grad_(True)
        vectors = encode()
        found: Any = [None] * len(named)
        if named and vectors.requires_grad:
            found = torch.autograd.grad(vectors.sum(), list(named.values()), allow_unused=True)
    except RuntimeError as error:  # A value was modified in place, for example.
        raise _opaque(name, error) from None
    finally:
        for key, one in named.items():
            one.requires_grad_(wanted[key])
    reached = {key: one for (key, one), gradient in zip(named.items(), found, strict=True) if gradient is not None}
    if not reached:
        raise NotApplicable(
            f"the vectors of {name} have no gradient with respect to any parameter, so it cannot be trained"
        )
    return reached


def _blocks(module: torch.nn.Module, path: str) -> Iterator[str]:
    """Yield the names of blocks: members of module lists whose parameterised members all contain submodules."""
    members = [(key, one) for key, one in module.named_children() if any(True for _ in one.parameters())]
    fewest = {torch.nn.ModuleList: 1, torch.nn.Sequential: 2}.get(type(module), len(members) + 1)
    if len(members) >= fewest and all(any(True for _ in one.children()) for _, one in members):
        yield from (f"{path}.{key}" for key, _ in members)
        return
    for key, one in members:
        yield from _blocks(one, f"{path}.{key}")
