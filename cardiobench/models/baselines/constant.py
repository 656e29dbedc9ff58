"""Constant baseline: the same vector for every recording."""

from typing import TYPE_CHECKING

from cardiobench.data.media.types import FrameSampling
from cardiobench.models.cards import ModelCard

if TYPE_CHECKING:
    import torch

    from cardiobench.data.media.types import Clip, Ecg

COMPONENT = "adapter constant"
VERSION = 1


class Constant:
    """Encoder that returns 1.0 for every recording, so that a probe can only learn the best constant."""

    revision = "1"
    modalities = ("echo", "ecg")
    leads = ()
    dim = 1
    pooling = "mean"
    sampling = FrameSampling(count=1)
    warnings = ()

    def __init__(self, card: ModelCard):
        self.name = card.id
        self.preprocessing = card.preprocessing

    def transform(self, recording: "Clip | Ecg") -> "torch.Tensor":
        """Return the same single part for every recording. The shape is (1, 1)."""
        import torch

        return torch.ones(1, 1)

    def encode(self, parts: "torch.Tensor") -> "torch.Tensor":
        """Encode parts (N, 1) as vectors (N, 1)."""
        return parts

    def to(self, device: "torch.device") -> "Constant":
        """Return the encoder; there is nothing to move."""
        return self
