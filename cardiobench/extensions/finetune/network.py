"""A copy of a model's network with a linear head on the pooled vector of a recording."""

import copy
from typing import Literal

import numpy as np
import torch

from cardiobench.core.errors import NotApplicable
from cardiobench.embeddings.cost import layers_apart
from cardiobench.extensions.finetune.structure import Structure, structure_of
from cardiobench.models.base import Encoder
from cardiobench.models.contract import encode
from cardiobench.models.custom import networks_of

HEAD = "head."
"""Prefix of the names of the parameters of the head."""


class FinetunedNetwork(torch.nn.Module):
    """A copy of an encoder's networks that pools the vectors of parts as the encoder's store does, with a linear head.

    The head stands behind a fixed standardisation of the vector by that of the frozen model on the training recordings, so that
    one learning rate suits models whose vectors differ in scale. Batch normalisation keeps the statistics of the model, so
    that a batch can be cut into smaller ones.

    Args:
        encoder: Encoder, which stays as it is.
        scale: Mean and standard deviation of each dimension of the pooled vectors of the frozen model, (2, dim).
        outputs: Numbers that the head gives.
        device: Device of the copy.
    """

    def __init__(self, encoder: Encoder, scale: np.ndarray, outputs: int, device: torch.device):
        super().__init__()
        copied = copy.deepcopy(encoder).to(device)
        self.pooling: Literal["mean", "mean_l2"] = encoder.pooling
        self.encoders = (copied,)  # In a tuple, since it may be a module itself.
        self.networks = torch.nn.ModuleList(networks_of(copied))
        self.adapted: tuple[str, ...] = ()
        self.requires_grad_(False)
        self.register_buffer("scale", torch.as_tensor(scale, dtype=torch.float32))
        self.head: torch.nn.Linear = torch.nn.Linear(scale.shape[1], outputs)
        self.to(device).eval()

    def train(self, mode: bool = True) -> "FinetunedNetwork":
        """Set the mode of the network; batch normalisation stays in that of evaluation."""
        super().train(mode)
        for module in self.modules():
            if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
                module.eval()
        return self

    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as vectors (N, dim), or (N, T, dim), with gradients.

        No layer is fused: a fused one reads the frozen weights and passes adapters by.
        """
        with layers_apart():
            return encode(self.encoders[0], parts, gradients=True).float()

    def embed(self, parts: torch.Tensor) -> torch.Tensor:
        """Return the pooled vectors (R, dim) of recordings (R, P, ...)."""
        vectors = self.encode(parts.flatten(0, 1))
        vectors = vectors.reshape(len(parts), -1, vectors.shape[-1])
        return self.pool(vectors)

    def pool(self, vectors: torch.Tensor) -> torch.Tensor:
        """Pool the vectors of recordings (R, V, dim) as stored ones are (`Embeddings.pooled`)."""
        if self.pooling == "mean":
            return vectors.mean(dim=1)
        return torch.nn.functional.normalize(torch.nn.functional.normalize(vectors, dim=-1).mean(dim=1), dim=-1)

    def answer(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return the outputs (R, outputs) of the head to pooled vectors."""
        mean, deviation = self.get_buffer("scale").unbind()
        return self.head((vectors - mean) / deviation)

    def forward(self, parts: torch.Tensor) -> torch.Tensor:
        """Return the outputs (R, outputs) of recordings (R, P, ...)."""
        return self.answer(self.embed(parts))

    def structure(self, parts: torch.Tensor, name: str) -> Structure:
        """Return the structure of the networks by encoding one part, (1, ...)."""
        return structure_of(self, "networks", lambda: self.encode(parts), name)


def check_network(encoder: Encoder, protocol: str) -> None:
    """Refuse a model without a PyTorch network whose parameters could be trained."""
    if not any(True for network in networks_of(encoder) for _ in network.parameters()):
        raise NotApplicable(f"{encoder.name} has no PyTorch network that {protocol} could train")
