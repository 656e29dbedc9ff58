"""Vision transformer of DINOv3 with the authors' key names: rotary positions, registers, scaled residuals."""

import math

import torch
from torch import nn
from torch.nn import functional

from cardiobench.models.blocks.vit_block import Mlp

PATCH = 16
REGISTERS = 4
EPS = 1e-5
BASE = 100.0  # Base of the rotary periods, which range from 1 to just below it.
DIM, DEPTH, HEADS = 1024, 24, 16

Rotation = tuple[torch.Tensor, torch.Tensor]


class DINOv3(nn.Module):
    """The ViT-L/16, or a smaller version, for frames with sides that are multiples of 16.

    Source: Simeoni et al., DINOv3, arXiv 2508.10104; github.com/facebookresearch/dinov3.

    Args:
        dim: Length of a token.
        depth: Blocks.
        heads: Attention heads; the width of each is a multiple of 4.
    """

    def __init__(self, dim: int = DIM, depth: int = DEPTH, heads: int = HEADS):
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.storage_tokens = nn.Parameter(torch.zeros(1, REGISTERS, dim))
        self.mask_token = nn.Parameter(torch.zeros(1, dim))  # Used in pretraining only, not for encoding.
        self.patch_embed = PatchTokens(dim)
        self.rope_embed = Places(dim // heads)
        self.blocks = nn.ModuleList(DinoBlock(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim, eps=EPS)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Encode frames (N, 3, H, W) as normalised tokens (N, 1 + 4 + H/16 * W/16, dim): class token, registers, patches."""
        patches = self.patch_embed(frames)
        rows, columns = patches.shape[2:]
        first = torch.cat([self.cls_token, self.storage_tokens], dim=1).expand(len(frames), -1, -1)
        tokens = torch.cat([first, patches.flatten(2).transpose(1, 2)], dim=1)
        rotation = self.rope_embed(rows, columns)
        for block in self.blocks:
            tokens = block(tokens, rotation)
        return self.norm(tokens)


class PatchTokens(nn.Module):
    """Patches of 16 x 16 pixels to tokens."""

    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Conv2d(3, dim, kernel_size=PATCH, stride=PATCH)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Map (N, 3, H, W) to (N, dim, H/16, W/16)."""
        return self.proj(frames)


class Places(nn.Module):
    """Rotary positions: rotation angles of the queries and keys of each patch.

    Centres of the patches range from -1 to 1 along each side. A quarter of the dimensions of a head rotates with the
    row and a quarter with the column, at the periods in the buffer; the second half repeats the first.
    """

    periods: torch.Tensor

    def __init__(self, head_dim: int):
        super().__init__()
        count = head_dim // 4
        self.register_buffer("periods", BASE ** (torch.arange(count) / count))

    def forward(self, rows: int, columns: int) -> Rotation:
        """Return sine and cosine, (rows * columns, head_dim) each, row by row."""
        centres = [2 * (torch.arange(n, device=self.periods.device) + 0.5) / n - 1 for n in (rows, columns)]
        grid = torch.stack(torch.meshgrid(*centres, indexing="ij"), dim=-1).reshape(-1, 2, 1)
        angles = (2 * math.pi * grid / self.periods).flatten(1).tile(2)
        return angles.sin(), angles.cos()


def turned(parts: torch.Tensor, rotation: Rotation) -> torch.Tensor:
    """Apply the rotary position embedding to the queries or keys of the patches, which are the last tokens.

    Takes and returns (N, heads, T, head_dim).
    """
    sine, cosine = rotation
    rest, patches = parts.split([parts.shape[2] - len(sine), len(sine)], dim=2)
    low, high = patches.chunk(2, dim=-1)
    patches = patches * cosine + torch.cat([-high, low], dim=-1) * sine
    return torch.cat([rest, patches.type_as(rest)], dim=2)


class MaskedBias(nn.Linear):
    """A linear layer with a stored mask of its bias, which removes the bias of the keys.

    In the published weights the whole mask is zero, and so is the bias.
    """

    bias_mask: torch.Tensor

    def __init__(self, dim: int):
        super().__init__(dim, 3 * dim)
        self.register_buffer("bias_mask", torch.ones(3 * dim))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens (..., dim) to queries, keys and values (..., 3 * dim)."""
        return functional.linear(tokens, self.weight, self.bias * self.bias_mask)


class RotaryAttention(nn.Module):
    """Attention of all tokens to all tokens with rotary positions of the patches."""

    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = MaskedBias(dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, tokens: torch.Tensor, rotation: Rotation) -> torch.Tensor:
        """Transform tokens (N, T, dim); the shape stays the same."""
        query, key, value = self.qkv(tokens).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(turned(query, rotation), turned(key, rotation), value)
        return self.proj(mixed.transpose(1, 2).flatten(2))


class Scale(nn.Module):
    """A learned factor for each dimension of a token."""

    def __init__(self, dim: int):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(dim))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Transform tokens (..., dim); the shape stays the same."""
        return tokens * self.gamma


class DinoBlock(nn.Module):
    """Block of attention and MLP, each with pre-norm, scaling and a residual connection."""

    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=EPS)
        self.attn = RotaryAttention(dim, heads)
        self.ls1 = Scale(dim)
        self.norm2 = nn.LayerNorm(dim, eps=EPS)
        self.mlp = Mlp(dim, bias=True)
        self.ls2 = Scale(dim)

    def forward(self, tokens: torch.Tensor, rotation: Rotation) -> torch.Tensor:
        """Transform tokens (N, T, dim); the shape stays the same."""
        tokens = tokens + self.ls1(self.attn(self.norm1(tokens), rotation))
        return tokens + self.ls2(self.mlp(self.norm2(tokens)))
