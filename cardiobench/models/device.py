"""Device and memory format of a network."""

from typing import Any

import torch

from cardiobench.core.errors import CardioBenchError


def name_of(device: torch.device) -> str:
    """Return a device's name: its type and, on a GPU, the model of the GPU."""
    return f"cuda: {torch.cuda.get_device_name(device)}" if device.type == "cuda" else device.type


def training_device(wanted: str, option: str) -> torch.device:
    """Return the device of a training: "auto" is a GPU where there is one.

    Args:
        wanted: "auto", "cpu" or "cuda".
        option: Name of the option that says so, for messages.

    Raises:
        CardioBenchError: There is no GPU, and one is asked for.
    """
    gpu = torch.cuda.is_available()
    if wanted == "cuda" and not gpu:
        raise CardioBenchError(f"{option} is cuda, and there is no GPU that PyTorch can use. Leave the option out.")
    return torch.device(("cuda" if gpu else "cpu") if wanted == "auto" else wanted)


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
