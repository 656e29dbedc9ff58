"""Base class of encoders whose network maps prepared parts to vectors."""

from typing import Self

import torch

from cardiobench.models.device import to_device
from cardiobench.models.tokens import spatial_tokens

COMPONENT = "encoder network"
VERSION = 1


class NetworkEncoder:
    """An encoder with a frozen network.

    Attributes:
        network: Function from parts (N, ...) to vectors (N, dim).
    """

    network: torch.nn.Module

    @torch.no_grad()
    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) on the network's device as float32 vectors (N, dim)."""
        return self.network(parts).float()

    @torch.no_grad()
    def encode_tokens(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as float32 tokens (N, times, rows, columns, width).

        Raises `NotApplicable` if there are none.
        """
        return spatial_tokens(self.network, parts)

    def to(self, device: torch.device) -> Self:
        """Move the network and return the encoder."""
        to_device(self.network, device)
        return self
