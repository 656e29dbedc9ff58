"""openecg codec v6: convolutions and a transformer over tokens of 20 ms of a single lead, with three heads.

Source: package openecg 0.11.0 (https://github.com/vitaldb/openecg), its architecture `vit_transformer_sample_res_convtok_mh_1ch`.
"""

import re
from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional

from cardiobench.models.blocks.vit_block import Block

PATCH = 10
"""Samples per token at 500 Hz."""
WIDTH = 128
HEADS = 4
HIDDEN = 256
CONVOLUTIONS = 4
DEPTH = 4
MOST_TOKENS = 512
WAVES, BEATS, RHYTHMS = 4, 6, 6

# Names in layers of `torch.nn.TransformerEncoder` -> names of `Block`.
RENAMED = {
    "self_attn.in_proj_": "attn.qkv.",
    "self_attn.out_proj.": "attn.proj.",
    "linear1.": "mlp.fc1.",
    "linear2.": "mlp.fc2.",
    "norm1.": "norm1.",
    "norm2.": "norm2.",
}


class OpenEcgCodec(nn.Module):
    """The network of a single lead; its heads label each sample with a wave, a beat and a rhythm."""

    pos_enc: torch.Tensor

    def __init__(self):
        super().__init__()
        self.conv_tok = nn.Conv1d(1, WIDTH, 2 * PATCH, stride=PATCH, padding=PATCH // 2)
        self.register_buffer("pos_enc", positions())
        self.lower_convs = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 7, padding=3) for _ in range(CONVOLUTIONS))
        self.lower_norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(CONVOLUTIONS))
        self.blocks = nn.ModuleList(
            Block(WIDTH, HEADS, eps=1e-5, bias=True, qkv_bias=True, hidden=HIDDEN) for _ in range(DEPTH)
        )
        self.refine = nn.Sequential(
            nn.Conv1d(WIDTH, WIDTH, 5, padding=2), nn.GELU(), nn.Conv1d(WIDTH, WIDTH, 5, padding=2)
        )
        self.head = nn.Linear(WIDTH, WAVES)  # Not applied: the head of an earlier version, which the checkpoint keeps.
        self.head_sample = nn.Linear(WIDTH, WAVES)
        self.beat_sample = nn.Linear(WIDTH, BEATS)
        self.rhythm_sample = nn.Linear(WIDTH, RHYTHMS)

    def tokens(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode leads (B, n) at 500 Hz, n a multiple of 10 up to 5120, as tokens (B, n / 10, 128)."""
        tokens = self.conv_tok(signal[:, None]).transpose(1, 2)
        tokens = tokens + self.pos_enc[:, : tokens.shape[1]]
        for convolution, norm in zip(self.lower_convs, self.lower_norms, strict=True):
            tokens = norm(tokens + functional.gelu(convolution(tokens.transpose(1, 2)).transpose(1, 2)))
        for block in self.blocks:
            tokens = block(tokens)
        return tokens

    def side_by_side(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode recordings (B, leads, n) lead by lead as tokens (B, n / 10, leads * 128)."""
        tokens = self.tokens(signal.flatten(0, 1)).unflatten(0, signal.shape[:2])
        return tokens.transpose(1, 2).flatten(2)

    def forward(self, signal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return logits of waves (B, n, 4), beats (B, n, 6) and rhythms (B, n, 6) of leads (B, n)."""
        samples = self.tokens(signal).transpose(1, 2).repeat_interleave(PATCH, dim=2)
        samples = (samples + self.refine(samples)).transpose(1, 2)
        return self.head_sample(samples), self.beat_sample(samples), self.rhythm_sample(samples)


def positions() -> torch.Tensor:
    """Return the sinusoidal table of positions (1, 512, 128): sine in even and cosine in odd columns."""
    rates = 10000 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
    angles = torch.arange(MOST_TOKENS)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)[None]


def published_keys(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Rename the weights of a checkpoint to the names of `OpenEcgCodec`."""
    return {_renamed(key): tensor for key, tensor in state.items()}


def _renamed(key: str) -> str:
    layer = re.fullmatch(r"upper_transformer\.layers\.(\d+)\.(.+)", key)
    if not layer:
        return key
    for theirs, ours in RENAMED.items():
        if layer[2].startswith(theirs):
            return f"blocks.{layer[1]}.{ours}{layer[2].removeprefix(theirs)}"
    return key
