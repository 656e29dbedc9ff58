"""ECG-CPC (arXiv:2509.25095): convolutions to 120 tokens per second and causal S4 layers that predict later tokens."""

from collections.abc import Mapping

import torch
from torch import nn

from cardiobench.models.blocks.s4 import DROPOUT, LAYERS, STATES, WIDTH, S4Layer, s4_stack

LEADS = 12
SAMPLES = 2400
TOKENS = 1200
"""Number of tokens of a pretraining recording, the length of the stored kernels; shorter signals use their
beginning."""
# Names of the two halves of the network and of the pretraining head in the published code.
PLACES = ("ts_encoder.encoder.", "ts_encoder.predictor.predictor.")
HEAD = "ts_encoder.head_ssl."


class EcgCpc(nn.Module):
    """The network without its pretraining head."""

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
    """Return a convolution with its batch norm; the first halves the rate, the others have a kernel of one sample."""
    kernel, stride, padding = (3, 2, 1) if first else (1, 1, 0)
    return nn.Sequential(
        nn.Conv1d(inputs, WIDTH, kernel, stride, padding, bias=False), nn.BatchNorm1d(WIDTH), nn.ReLU()
    )


def published_keys(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Rename the weights of a checkpoint to the names of `EcgCpc`, without the pretraining head."""
    return {_own(key): tensor for key, tensor in state.items() if not key.startswith(HEAD)}


def _own(key: str) -> str:
    return next((key.removeprefix(place) for place in PLACES if key.startswith(place)), key)
