"""Combine a copy of a model's network with a linear head on pooled vectors."""

import copy
from typing import Literal

import numpy as np
import torch
from torch.nn.parameter import is_lazy

from cardiobench.core.errors import NotApplicable
from cardiobench.embeddings.cost import layers_apart
from cardiobench.extensions.finetune.structure import LATE, Structure, structure_of
from cardiobench.models.base import Encoder
from cardiobench.models.contract import encode
from cardiobench.models.custom import networks_of

HEAD = "head."
"""Prefix of the head's parameter names."""


class FinetunedNetwork(torch.nn.Module):
    """Trainable copy of an encoder with a linear head on pooled vectors.

    Vectors are standardised with the statistics of the frozen model on training recordings, so that one learning rate
    suits models of different scale. Batch normalisation keeps the pretrained statistics, so that a batch can be divided
    into micro-batches.

    Args:
        encoder: Encoder to copy; the original does not change.
        scale: Mean and standard deviation of the frozen model's pooled vectors, (2, dim).
        outputs: Number of outputs of the head.
        device: Device of the copy.
    """

    def __init__(self, encoder: Encoder, scale: np.ndarray, outputs: int, device: torch.device):
        super().__init__()
        copied = copy.deepcopy(encoder).to(device)
        self.pooling: Literal["mean", "mean_l2"] = encoder.pooling
        # A tuple hides the encoder from `torch.nn.Module`, because the encoder may be a module.
        self.encoders = (copied,)
        self.networks = torch.nn.ModuleList(networks_of(copied))
        self.adapted: tuple[str, ...] = ()
        self.requires_grad_(False)
        self.register_buffer("scale", torch.as_tensor(scale, dtype=torch.float32))
        self.head: torch.nn.Linear = torch.nn.Linear(scale.shape[1], outputs)
        self.to(device).eval()

    def train(self, mode: bool = True) -> "FinetunedNetwork":
        """Set the training mode, keeping batch normalisation in evaluation mode."""
        super().train(mode)
        for module in self.modules():
            if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
                module.eval()
        return self

    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as vectors (N, dim) or (N, T, dim), with gradients.

        Fused layers are disabled, because they read frozen weights and bypass adapters.
        """
        with layers_apart():
            return encode(self.encoders[0], parts, gradients=True).float()

    def embed(self, parts: torch.Tensor) -> torch.Tensor:
        """Return pooled vectors (R, dim) for recordings (R, P, ...)."""
        vectors = self.encode(parts.flatten(0, 1))
        vectors = vectors.reshape(len(parts), -1, vectors.shape[-1])
        return self.pool(vectors)

    def pool(self, vectors: torch.Tensor) -> torch.Tensor:
        """Pool vectors (R, V, dim) in the same way as stored ones (`Embeddings.pooled`)."""
        if self.pooling == "mean":
            return vectors.mean(dim=1)
        return torch.nn.functional.normalize(torch.nn.functional.normalize(vectors, dim=-1).mean(dim=1), dim=-1)

    def answer(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return head outputs (R, outputs) for pooled vectors."""
        mean, deviation = self.get_buffer("scale").unbind()
        return self.head((vectors - mean) / deviation)

    def forward(self, parts: torch.Tensor) -> torch.Tensor:
        """Return outputs (R, outputs) for recordings (R, P, ...)."""
        return self.answer(self.embed(parts))

    def structure(self, parts: torch.Tensor, name: str) -> Structure:
        """Return the network structure found by encoding one part, (1, ...)."""
        return structure_of(self, "networks", lambda: self.encode(parts), name)


def check_network(encoder: Encoder, protocol: str) -> None:
    """Reject models without a trainable PyTorch network."""
    parameters = [one for network in networks_of(encoder) for one in network.parameters()]
    if not parameters:
        raise NotApplicable(f"{encoder.name} has no PyTorch network that {protocol} can train")
    if any(map(is_lazy, parameters)):
        raise NotApplicable(f"{encoder.name} {LATE}")
