"""Small one-dimensional residual network for quick experiments and tests."""

import torch
from torch import nn
from torch.nn import functional

STAGES = ((32, 5), (64, 5), (128, 5), (128, 3))
"""Channels and kernel size of each stage; a stage has one block and halves the length."""
STEM = (32, 15)
GROUPS = 8


class ResidualBlock1d(nn.Module):
    """Two convolutions with group norms, which do not depend on the batch, and a shortcut."""

    def __init__(self, inputs: int, outputs: int, taps: int):
        super().__init__()
        self.conv1 = nn.Conv1d(inputs, outputs, taps, 2, taps // 2, bias=False)
        self.conv2 = nn.Conv1d(outputs, outputs, taps, 1, taps // 2, bias=False)
        self.norm1, self.norm2 = nn.GroupNorm(GROUPS, outputs), nn.GroupNorm(GROUPS, outputs)
        self.shortcut = nn.Conv1d(inputs, outputs, 1, 2, bias=False)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Map a signal (B, inputs, L) to (B, outputs, L / 2 rounded up)."""
        out = self.norm2(self.conv2(functional.relu(self.norm1(self.conv1(signal)))))
        return functional.relu(out + self.shortcut(signal))


class ResNet1d(nn.Module):
    """Stem, four blocks, mean over time, and a linear head.

    Args:
        outputs: Number of outputs per signal.
        leads: Number of input channels.
    """

    def __init__(self, outputs: int, leads: int = 12):
        super().__init__()
        width, taps = STEM
        self.stem = nn.Conv1d(leads, width, taps, 2, taps // 2, bias=False)
        self.norm = nn.GroupNorm(GROUPS, width)
        widths = (width, *(channels for channels, _ in STAGES))
        self.blocks = nn.Sequential(
            *(ResidualBlock1d(widths[n], channels, taps) for n, (channels, taps) in enumerate(STAGES))
        )
        self.head = nn.Linear(widths[-1], outputs)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Map signals (B, leads, L) to outputs (B, outputs)."""
        return self.head(self.blocks(functional.relu(self.norm(self.stem(signal)))).mean(-1))
