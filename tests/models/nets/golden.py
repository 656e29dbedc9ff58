"""Reading the golden files beside the checkout: someone else's outputs for weights and inputs that a salt determines."""

import hashlib
import importlib.util
import re
from pathlib import Path

import torch

NORMS = (torch.nn.LayerNorm, torch.nn.GroupNorm, torch.nn.BatchNorm1d)


def module(folder: Path, name: str):
    """One of the two Python files that come with the golden data."""
    spec = importlib.util.spec_from_file_location(f"golden_{name}", folder / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def norms(network: torch.nn.Module) -> dict[str, str]:
    """Name -> class, eps and groups of every norm, in the words of the golden files."""
    found = {}
    for name, part in network.named_modules():
        if isinstance(part, NORMS):
            groups = f" groups {part.num_groups}" if isinstance(part, torch.nn.GroupNorm) else ""
            found[name] = f"{type(part).__name__} eps {part.eps:g}{groups}"
    return found


def convolutions(network: torch.nn.Module) -> dict[str, tuple]:
    """Name -> in, out, kernel, stride, padding, groups, bias of every convolution."""
    return {
        name: (
            part.in_channels,
            part.out_channels,
            list(part.kernel_size),
            list(part.stride),
            list(part.padding),
            part.groups,
            part.bias is not None,
        )
        for name, part in network.named_modules()
        if isinstance(part, torch.nn.Conv1d)
    }


def facts(spec: dict) -> tuple[dict[str, str], dict[str, tuple]]:
    """The same two tables as a golden file has them."""
    stated = spec["static_facts"]
    listed = {
        name: re.sub(r"eps (\S+)", lambda eps: f"eps {float(eps[1]):g}", words)
        for words, names in stated["norm_layers"].items()
        for name in names
    }
    return listed, {row[0]: tuple(row[2:]) for row in stated["convolutions"]}


def key_hash(shapes: dict) -> str:
    """SHA-256 over the names and shapes of tensors, its first 16 digits."""
    lines = sorted(f"{name} {list(shape)}" for name, shape in shapes.items())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
