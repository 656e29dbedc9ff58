"""Device and memory format of a network."""

from typing import Any

import torch


def name_of(device: torch.device) -> str:
    """Return a device's name: its type and, on a GPU, the model of the GPU."""
    return f"cuda: {torch.cuda.get_device_name(device)}" if device.type == "cuda" else device.type


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
