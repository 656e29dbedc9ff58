"""ECG-JEPA of Weimann and Conrad (arXiv 2410.13867): a vision transformer over patches in time of all 12 leads."""

from typing import NamedTuple

import torch
from torch import nn

from cardiobench.models.blocks.vit_block import Block

PATCH = 25
LEADS = 12
SAMPLES = 5000


class Size(NamedTuple):
    """Length of a token, number of blocks, and number of heads."""

    dim: int
    depth: int
    heads: int


SIZES = {"XS": Size(192, 8, 4), "S": Size(384, 8, 6), "B": Size(768, 12, 12)}


def positions(count: int, dim: int) -> torch.Tensor:
    """Compute sines (even columns) and cosines (odd columns) of 0 .. count - 1 at dim / 2 wavelengths.

    Returns an array (count, dim).
    """
    wavelengths = 10000 ** (torch.arange(0, dim, 2, dtype=torch.float64, device="cpu") / dim)
    angles = torch.arange(count, dtype=torch.float64, device="cpu")[:, None] / wavelengths
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()


class PatchEmbed(nn.Module):
    """A linear map of each patch of 25 samples of all leads."""

    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Conv1d(LEADS, dim, PATCH, PATCH, bias=False)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Map a signal (B, 12, L) to tokens (B, L / 25, dim)."""
        return self.proj(signal).transpose(1, 2)


class EcgJepaWeimann(nn.Module):
    """The target encoder; its state_dict has the keys under `model` of a checkpoint, without `target_encoder.`.

    Args:
        size: One of `SIZES`.
    """

    def __init__(self, size: str = "S"):
        super().__init__()
        dim, depth, heads = SIZES[size]
        self.registers = nn.Parameter(torch.zeros(1, 1, dim))
        self.patch_embed = PatchEmbed(dim)
        self.register_buffer("pos_embed", positions(SAMPLES // PATCH, dim), persistent=False)
        self.blocks = nn.ModuleList(Block(dim, heads, eps=1e-6, bias=False) for _ in range(depth))
        self.norm = nn.LayerNorm(dim, eps=1e-6, bias=False)

    def with_register(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode a signal (B, 12, 5000) as the register token followed by 200 tokens.

        Returns an array (B, 201, dim).
        """
        tokens = self.patch_embed(signal) + self.pos_embed
        tokens = torch.cat([self.registers.expand(len(tokens), -1, -1), tokens], dim=1)
        for block in self.blocks:
            tokens = block(tokens)
        return self.norm(tokens)

    def tokens(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode a signal (B, 12, 5000) as 200 tokens (B, 200, dim) in the order of time, without the register."""
        return self.with_register(signal)[:, 1:]

    forward = tokens
