"""ECG_JEPA of Kim (arXiv 2410.08559): a vision transformer over 8 leads x 50 patches with cross-pattern attention."""

import torch
from torch import nn

from cardiobench.models.blocks.vit_block import Block

DIM = 768
DEPTH = 12
HEADS = 16
LEADS = 8
PATCHES = 50
PATCH = 50  # Samples.


def sine_cosine(places: torch.Tensor, dim: int) -> torch.Tensor:
    """Compute sines, then cosines, of positions (n,) at dim / 2 wavelengths: (n, dim), float64."""
    rates = 10000 ** -(torch.arange(dim // 2, dtype=torch.float64, device="cpu") / (dim // 2))
    angles = places.double()[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def positions() -> torch.Tensor:
    """Compute position embeddings of the 400 tokens, lead after lead: first half of the columns for time, second for lead."""
    index = torch.arange(LEADS * PATCHES, device="cpu")
    time, lead = sine_cosine(index % PATCHES, DIM // 2), sine_cosine(index // PATCHES, DIM // 2)
    return torch.cat([time, lead], dim=1).float()


def cross_pattern() -> torch.Tensor:
    """Return the attention mask, bool (400, 400): tokens attend to tokens of the same lead and of the same time."""
    index = torch.arange(LEADS * PATCHES, device="cpu")
    lead, time = index // PATCHES, index % PATCHES
    return (lead[:, None] == lead) | (time[:, None] == time)


class Blocks(nn.Module):
    """Transformer blocks; positions are added before every block."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block(DIM, HEADS, eps=1e-5, bias=True) for _ in range(DEPTH))

    def forward(self, tokens: torch.Tensor, places: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, 400, 768) to (B, 400, 768)."""
        for block in self.blocks:
            tokens = block(tokens + places, allowed)
        return tokens


class EcgJepaKim(nn.Module):
    """The encoder; its state_dict has the keys under `encoder` in `multiblock_epoch100.pth`."""

    def __init__(self):
        super().__init__()
        self.W_P = nn.Linear(PATCH, DIM)
        self.pos_embed = nn.Parameter(positions(), requires_grad=False)
        self.encoder_blocks = Blocks()
        self.norm = nn.LayerNorm(DIM, eps=1e-5)
        self.register_buffer("allowed", cross_pattern(), persistent=False)

    def tokens(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode a signal (B, 8, 2500) as tokens (B, 400, 768), lead after lead."""
        patches = signal.unflatten(-1, (PATCHES, PATCH)).flatten(1, 2)
        return self.norm(self.encoder_blocks(self.W_P(patches), self.pos_embed, self.allowed))

    forward = tokens
