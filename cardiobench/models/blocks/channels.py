"""Constants of channels on the device of a network."""

from collections.abc import Sequence

import torch


def on_device(values: Sequence[float], device: torch.device) -> torch.Tensor:
    """Return numbers as float32 (n,) on a device, made there: a copy from the host would make a GPU wait."""
    return torch.cat([torch.full((1,), value, dtype=torch.float32, device=device) for value in values])
