"""xECG (Lunelli et al., arXiv:2509.10151): xLSTM blocks over patches of 0.25 s of twelve leads, in alternating directions.

The recurrences are those of xLSTM (Beck et al., NeurIPS 2024, arXiv:2405.04517).
"""

import math
from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional

LEADS = 12
PATCH = 25
"""Samples per token at 100 Hz."""
WIDTH = 1024
HEADS = 4
HIDDEN = 1344
"""Width of the feed-forward layers behind an sLSTM."""
KERNEL = 4
SMALL = 4
"""Width of the blocks in which an mLSTM computes its queries, keys and values."""
BLOCKS = "ssmmssmms"
"""The kind of each block: s for sLSTM, m for mLSTM."""
GATES = 4

# Parts of published names -> ours.
RENAMED = {
    "core.model.blocks.": "blocks.",
    "patch_embedding.conv.": "patch_embedding.",
    ".conv1d.conv.": ".conv.",
    ".mlstm_cell.": ".",
    ".slstm_cell._recurrent_kernel_": ".recurrent",
    ".slstm_cell._bias_": ".bias",
}


class Norm(nn.Module):
    """Layer norm of each of several groups, without offset; the stored gain is its difference from 1."""

    def __init__(self, width: int, groups: int = 1):
        super().__init__()
        self.weight, self.groups = nn.Parameter(torch.zeros(width)), groups

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Normalise the last axis of values (B, T, width)."""
        grouped = values.unflatten(-1, (self.groups, -1))
        normed = functional.layer_norm(grouped, grouped.shape[-1:], eps=1e-5)
        return normed.flatten(-2) * (1 + self.weight)


class Headwise(nn.Module):
    """Linear layer of each of several blocks of the width, without bias."""

    def __init__(self, blocks: int, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(blocks, width, width))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Map values (B, T, blocks * width) to values of the same shape."""
        split = values.unflatten(-1, (self.weight.shape[0], -1))
        return torch.einsum("btni,noi->btno", split, self.weight).flatten(-2)


class CausalConvolution(nn.Conv1d):
    """Convolution of each channel with its three earlier and its present value."""

    def __init__(self, width: int):
        super().__init__(width, width, KERNEL, padding=KERNEL - 1, groups=width)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Map values (B, T, width) to values of the same shape."""
        return super().forward(values.transpose(1, 2))[..., : values.shape[1]].transpose(1, 2)


class Slstm(nn.Module):
    """sLSTM layer: a recurrence with exponential gates, in which each head sees its own last output."""

    def __init__(self):
        super().__init__()
        self.conv = CausalConvolution(WIDTH)
        self.igate, self.fgate, self.zgate, self.ogate = (Headwise(HEADS, WIDTH // HEADS) for _ in range(GATES))
        self.recurrent = nn.Parameter(torch.zeros(HEADS, GATES * WIDTH // HEADS, WIDTH // HEADS))
        self.bias = nn.Parameter(torch.zeros(GATES * WIDTH))
        self.group_norm = Norm(WIDTH, HEADS)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Map values (B, T, 1024) to values of the same shape."""
        smooth = functional.silu(self.conv(values))
        # The published layer passes the forget gate first to a recurrence that takes the input gate first.
        gates = torch.stack([self.fgate(smooth), self.igate(smooth), self.zgate(values), self.ogate(values)], dim=2)
        return self.group_norm(slstm(gates + self.bias.view(GATES, WIDTH), self.recurrent))


def slstm(gates: torch.Tensor, recurrent: torch.Tensor) -> torch.Tensor:
    """Compute the outputs of an sLSTM; its exponential gates are scaled by their running maximum to stay finite.

    Args:
        gates: Contributions of the inputs to the gates, (B, T, 4, heads * d): input, forget, cell and output.
        recurrent: Contribution of the last output of each head to its gates, (heads, 4 * d, d).

    Returns:
        Outputs, (B, T, heads * d).
    """
    batch, _, _, width = gates.shape
    heads = recurrent.shape[0]
    hidden = cell = norm = gates.new_zeros(batch, width)
    largest = gates.new_full((batch, width), -math.inf)
    outputs = []
    for step in gates.unbind(1):
        own = torch.einsum("bhi,hoi->bho", hidden.unflatten(1, (heads, -1)), recurrent)
        own = own.unflatten(2, (GATES, -1)).transpose(1, 2).flatten(2)
        enter, forget, value, out = (step + own).unbind(1)
        kept = largest + functional.logsigmoid(forget)
        largest = torch.maximum(enter, kept)
        enter, kept = (enter - largest).exp(), (kept - largest).exp()
        cell = kept * cell + enter * value.tanh()
        norm = kept * norm + enter
        hidden = out.sigmoid() * cell / norm
        outputs.append(hidden)
    return torch.stack(outputs, dim=1)


class Mlstm(nn.Module):
    """mLSTM layer: a matrix memory of keys and values with exponential gates, computed for all tokens at once."""

    def __init__(self):
        super().__init__()
        inner = 2 * WIDTH
        self.proj_up = nn.Linear(WIDTH, 2 * inner, bias=False)
        self.conv = CausalConvolution(inner)
        self.q_proj, self.k_proj, self.v_proj = (Headwise(inner // SMALL, SMALL) for _ in range(3))
        self.igate, self.fgate = nn.Linear(3 * inner, HEADS), nn.Linear(3 * inner, HEADS)
        self.outnorm = Norm(inner, HEADS)
        self.learnable_skip = nn.Parameter(torch.ones(inner))
        self.proj_down = nn.Linear(inner, WIDTH, bias=False)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Map values (B, T, 1024) to values of the same shape."""
        inner, gate = self.proj_up(values).chunk(2, dim=-1)
        smooth = functional.silu(self.conv(inner))
        query, key, value = self.q_proj(smooth), self.k_proj(smooth), self.v_proj(inner)
        every = torch.cat([query, key, value], dim=-1)
        query, key, value = (one.unflatten(-1, (HEADS, -1)).transpose(1, 2) for one in (query, key, value))
        read = mlstm(query, key, value, self.igate(every).transpose(1, 2), self.fgate(every).transpose(1, 2))
        normed = self.outnorm(read.transpose(1, 2).flatten(2))
        return self.proj_down((normed + self.learnable_skip * smooth) * functional.silu(gate))


def mlstm(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, enter: torch.Tensor, forget: torch.Tensor
) -> torch.Tensor:
    """Compute the outputs of an mLSTM as attention to earlier tokens, whose weights decay by the forget gates.

    Args:
        query: Queries, (B, heads, T, d).
        key: Keys, of the same shape.
        value: Values, of the same shape.
        enter: Logarithms of the input gates, (B, heads, T).
        forget: Forget gates before their sigmoid, (B, heads, T).

    Returns:
        Outputs, (B, heads, T, d).
    """
    decay = functional.logsigmoid(forget).cumsum(-1)
    later = torch.ones(query.shape[2], query.shape[2], dtype=torch.bool, device=query.device).triu(1)
    weight = (decay[..., :, None] - decay[..., None, :] + enter[..., None, :]).masked_fill(later, -math.inf)
    largest = weight.amax(-1, keepdim=True)
    scores = query @ (key / math.sqrt(key.shape[-1])).transpose(-1, -2) * (weight - largest).exp()
    scale = torch.maximum(scores.sum(-1, keepdim=True).abs(), (-largest).exp())
    return scores / (scale + 1e-6) @ value


class FeedForward(nn.Module):
    """Gated feed-forward layer without biases."""

    def __init__(self):
        super().__init__()
        self.proj_up = nn.Linear(WIDTH, 2 * HIDDEN, bias=False)
        self.proj_down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Map values (B, T, 1024) to values of the same shape."""
        gate, up = self.proj_up(values).chunk(2, dim=-1)
        return self.proj_down(functional.gelu(gate) * up)


class XlstmBlock(nn.Module):
    """Residual block: an mLSTM, or an sLSTM with a feed-forward layer."""

    def __init__(self, kind: str):
        super().__init__()
        self.xlstm_norm = Norm(WIDTH)
        self.xlstm = Mlstm() if kind == "m" else Slstm()
        self.ffn_norm = Norm(WIDTH) if kind == "s" else None
        self.ffn = FeedForward() if kind == "s" else None

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, 1024) to tokens of the same shape."""
        tokens = tokens + self.xlstm(self.xlstm_norm(tokens))
        if self.ffn is not None and self.ffn_norm is not None:
            tokens = tokens + self.ffn(self.ffn_norm(tokens))
        return tokens


class XEcg(nn.Module):
    """The network; each block reads the tokens in the direction opposite to that of the block before."""

    def __init__(self):
        super().__init__()
        self.mask_token = nn.Parameter(torch.zeros(WIDTH))  # Not applied: the pretraining masks patches with it.
        self.patch_embedding = nn.Conv1d(LEADS, WIDTH, PATCH, stride=PATCH, bias=False)
        self.blocks = nn.ModuleList(XlstmBlock(kind) for kind in BLOCKS)

    def tokens(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode signals (B, 12, n) in mV at 100 Hz, n a multiple of 25, as tokens (B, n / 25, 1024) in the order of time."""
        tokens = self.patch_embedding(signal).transpose(1, 2)
        for number, block in enumerate(self.blocks):
            backwards = number % 2 == 1
            tokens = block(tokens.flip(1)).flip(1) if backwards else block(tokens)
        return tokens

    def representation(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode signals as a single token (B, 1, 1024): the mean over patches that do not start with zeros in all leads.

        Such a patch is taken for padding, as in the published code. A signal of nothing but padding gets the mean of all patches.
        """
        filled = (signal[:, :, ::PATCH] != 0).any(1)
        filled = filled | ~filled.any(1, keepdim=True)
        tokens = self.tokens(signal).masked_fill(~filled[..., None], 0)
        return (tokens.sum(1) / filled.sum(1, keepdim=True))[:, None]

    forward = tokens


def published_keys(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Rename the weights of a checkpoint to the names of `XEcg`, in the layout of the package xlstm without CUDA.

    Its CUDA code stores each recurrent kernel as (heads, d, 4 * d) and the biases head by head. The shape of the kernel
    shows which code wrote the file; the biases have the same shape in both layouts.
    """
    cuda = {key.rpartition(".")[0] for key, tensor in state.items() if _is_cuda_kernel(key, tensor)}
    return {
        _renamed(key): _plain(key, tensor) if key.rpartition(".")[0] in cuda else tensor
        for key, tensor in state.items()
    }


def _is_cuda_kernel(key: str, tensor: torch.Tensor) -> bool:
    return key.endswith("_recurrent_kernel_") and tensor.ndim == 3 and tensor.shape[2] > tensor.shape[1]


def _plain(key: str, tensor: torch.Tensor) -> torch.Tensor:
    if key.endswith("_recurrent_kernel_"):
        return tensor.transpose(1, 2).contiguous()
    return tensor.view(HEADS, GATES, -1).transpose(0, 1).flatten()


def _renamed(key: str) -> str:
    for theirs, ours in RENAMED.items():
        key = key.replace(theirs, ours)
    return key
