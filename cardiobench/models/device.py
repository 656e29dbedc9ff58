"""Device and memory format of a network."""

import os
from typing import Any

import torch

from cardiobench.core.errors import BadConfig


def name_of(device: torch.device) -> str:
    """Return a device's name: its type and, on a GPU, the model of the GPU."""
    return f"cuda: {torch.cuda.get_device_name(device)}" if device.type == "cuda" else device.type


def choose_device(wanted: str = "auto", option: str = "--device") -> torch.device:
    """Return a device that PyTorch can use here.

    Args:
        wanted: "cpu", "cuda", "mps", or "auto": "cuda" where it is here, unless the launcher asks for the CPU, else "cpu".
        option: Name of the option that says so, for messages.

    Raises:
        BadConfig: The device is not here.
    """
    absent = {"cuda": not torch.cuda.is_available(), "mps": not torch.backends.mps.is_available()}
    if wanted == "auto":
        wanted = "cpu" if absent["cuda"] or _launched_on_cpu() else "cuda"
    if absent.get(wanted):
        here = " and ".join(["cpu", *(name for name in absent if not absent[name])])
        raise BadConfig(
            f"{option} is {wanted}, and PyTorch {torch.__version__} finds no such device here, only {here}. "
            f"Give {option} one of those, or leave it out."
        )
    return torch.device(wanted)


def _launched_on_cpu() -> bool:
    """Return whether `accelerate launch --cpu`, or its configuration, asks for the CPU."""
    return os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes", "on")


def to_device(network: torch.nn.Module, device: torch.device) -> torch.nn.Module:
    """Move a network to a device, with its 2-D convolutions in `channels_last` memory format, which is faster.

    Convolutions over time have five axes, which know no such order: they stay as they are.
    """
    network.to(device)
    for module in network.modules():
        if isinstance(module, torch.nn.Conv2d):
            module.to(memory_format=torch.channels_last)
    return network


def device_of(encoder: Any) -> torch.device:
    """Return the device of an encoder's network; the CPU for one without parameters."""
    network = getattr(encoder, "network", None)
    parameter = next(network.parameters(), None) if isinstance(network, torch.nn.Module) else None
    return torch.device("cpu") if parameter is None else parameter.device
