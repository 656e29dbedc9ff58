"""ECG-CPC (arXiv:2509.25095): four convolutions to 120 tokens a second, four causal S4 layers, trained to predict the tokens that follow."""

from collections.abc import Mapping

import torch
from torch import nn

from cardiobench.models.nets.s4 import DROPOUT, LAYERS, STATES, WIDTH, S4Layer, s4_stack

LEADS = 12
SAMPLES = 2400
TOKENS = 1200
"""Tokens of the recordings of pretraining, of which the stored kernels are; shorter signals use their beginning."""
# Where the published code keeps the two halves of the network, and the head of its pretraining.
PLACES = ("ts_encoder.encoder.", "ts_encoder.predictor.predictor.")
HEAD = "ts_encoder.head_ssl."


class EcgCpc(nn.Module):
    """The network without the head of its pretraining."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            convolution(LEADS if first else WIDTH, first) for first in (True, False, False, False)
        )
        self.s4_layers = nn.ModuleList(S4Layer(WIDTH, STATES, TOKENS, DROPOUT, causal=True) for _ in range(LAYERS))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(LAYERS))
        self.dropout = nn.Dropout(DROPOUT)

    def tokens(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode a signal (B, 12, n) at 240 Hz, n at most 2400, as tokens (B, n / 2 rounded up, 512) in the order of time."""
        for layer in self.layers:
            signal = layer(signal)
        return s4_stack(signal.transpose(0, 1), self.s4_layers, self.norms, self.dropout).permute(1, 2, 0)

    forward = tokens


def convolution(inputs: int, first: bool) -> nn.Sequential:
    """Return a convolution with its batch norm; the first one halves the rate, the others see one sample."""
    kernel, stride, padding = (3, 2, 1) if first else (1, 1, 0)
    return nn.Sequential(
        nn.Conv1d(inputs, WIDTH, kernel, stride, padding, bias=False), nn.BatchNorm1d(WIDTH), nn.ReLU()
    )


def published_keys(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Rename a checkpoint's weights to the names of `EcgCpc`, without the head of pretraining."""
    return {_own(key): tensor for key, tensor in state.items() if not key.startswith(HEAD)}


def _own(key: str) -> str:
    return next((key.removeprefix(place) for place in PLACES if key.startswith(place)), key)
