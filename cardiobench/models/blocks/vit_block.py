"""Pre-norm transformer block of vision transformers, used by several families."""

import re

import torch
from torch import nn
from torch.nn import functional

# Names in the code of ST-MEM and MERL -> names of `Block`.
RENAMED = {
    "attn.norm": "norm1",
    "attn.fn.to_qkv": "attn.qkv",
    "attn.fn.to_out.0": "attn.proj",
    "ff.norm": "norm2",
    "ff.fn.net.0": "mlp.fc1",
    "ff.fn.net.3": "mlp.fc2",
}


class Attention(nn.Module):
    """Multi-head attention with a single projection for query, key and value, in this order."""

    def __init__(self, dim: int, heads: int, bias: bool, qkv_bias: bool = False):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim, bias=bias)

    def forward(self, tokens: torch.Tensor, allowed: torch.Tensor | None = None) -> torch.Tensor:
        """Map tokens (B, T, dim) to (B, T, dim).

        `allowed` (T, T) states whether a token (row) may attend to another (column).
        """
        query, key, value = self.qkv(tokens).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        out = functional.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
        return self.proj(out.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    """MLP of two layers with an exact GELU and `hidden` units inside, by default four times the width."""

    def __init__(self, dim: int, bias: bool, hidden: int | None = None):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden or 4 * dim, bias=bias)
        self.fc2 = nn.Linear(hidden or 4 * dim, dim, bias=bias)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, dim) to (B, T, dim)."""
        return self.fc2(functional.gelu(self.fc1(tokens)))


class Block(nn.Module):
    """Block of attention and MLP, each with pre-norm and a residual connection.

    Args:
        dim: Length of a token.
        heads: Number of attention heads.
        eps: Epsilon of the norms.
        bias: Whether layers have a bias, except the projection to query, key and value.
        qkv_bias: Whether the projection to query, key and value has a bias.
        hidden: Units inside the MLP; None for four times `dim`.
    """

    def __init__(self, dim: int, heads: int, eps: float, bias: bool, qkv_bias: bool = False, hidden: int | None = None):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=eps, bias=bias)
        self.attn = Attention(dim, heads, bias, qkv_bias)
        self.norm2 = nn.LayerNorm(dim, eps=eps, bias=bias)
        self.mlp = Mlp(dim, bias, hidden)

    def forward(self, tokens: torch.Tensor, allowed: torch.Tensor | None = None) -> torch.Tensor:
        """Map tokens (B, T, dim) to (B, T, dim)."""
        tokens = tokens + self.attn(self.norm1(tokens), allowed)
        return tokens + self.mlp(self.norm2(tokens))


def translate_weight_name(published: str) -> str:
    """Return the name in `blocks` for a weight of ST-MEM or MERL such as `block3.attn.fn.to_qkv.bias`."""
    parts = re.fullmatch(r"block(\d+)\.(.+)\.(weight|bias)", published)
    return f"blocks.{parts[1]}.{RENAMED.get(parts[2], parts[2])}.{parts[3]}" if parts else published
