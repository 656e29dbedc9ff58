"""Device and memory format of a network."""

import os
from typing import Any

import torch

from cardiobench.core.errors import BadConfig


def name_of(device: torch.device) -> str:
    """Return the name of a device: its type and, for a GPU, its model."""
    return f"cuda: {torch.cuda.get_device_name(device)}" if device.type == "cuda" else device.type


def choose_device(wanted: str = "auto", option: str = "--device") -> torch.device:
    """Return a device that is available to PyTorch.

    Args:
        wanted: "cpu", "cuda", "mps", or "auto", which is "cuda" if available and not disabled by the launcher, else
            "cpu".
        option: Name of the option for messages.

    Raises:
        BadConfig: The device is not available.
    """
    absent = {"cuda": not torch.cuda.is_available(), "mps": not torch.backends.mps.is_available()}
    if wanted == "auto":
        wanted = "cpu" if absent["cuda"] or _launched_on_cpu() else "cuda"
    if absent.get(wanted):
        here = " and ".join(["cpu", *(name for name in absent if not absent[name])])
        raise BadConfig(
            f"{option} is {wanted}, but PyTorch {torch.__version__} finds only {here}. "
            f"Give {option} one of these, or leave it out."
        )
    return torch.device(wanted)


def _launched_on_cpu() -> bool:
    """Return whether `accelerate launch --cpu` or its configuration requests the CPU."""
    return os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes", "on")


def to_device(network: torch.nn.Module, device: torch.device) -> torch.nn.Module:
    """Move a network to a device, with its 2-D convolutions in `channels_last` memory format, which is faster.

    Convolutions over time have five axes, for which this format does not exist, and are unchanged.
    """
    network.to(device)
    for module in network.modules():
        if isinstance(module, torch.nn.Conv2d):
            module.to(memory_format=torch.channels_last)
    return network


def device_of(encoder: Any) -> torch.device:
    """Return the device of an encoder's network; the CPU if it has no parameters."""
    network = getattr(encoder, "network", None)
    parameter = next(network.parameters(), None) if isinstance(network, torch.nn.Module) else None
    return torch.device("cpu") if parameter is None else parameter.device
