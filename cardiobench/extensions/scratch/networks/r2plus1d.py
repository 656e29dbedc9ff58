"""Small (2+1)D residual network for clips (Tran et al., arXiv:1711.11248)."""

import torch
from torch import nn
from torch.nn import functional

WIDTHS = (16, 32, 64, 128)
GROUPS = 8


class SplitConv(nn.Module):
    """Spatial convolution, followed by a temporal one if there are several frames."""

    def __init__(self, inputs: int, outputs: int, stride: int, *, time: bool):
        super().__init__()
        self.space = nn.Conv3d(inputs, outputs, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False)
        self.time = None
        if time:
            self.norm = nn.GroupNorm(GROUPS, outputs)
            self.time = nn.Conv3d(outputs, outputs, (3, 1, 1), (stride, 1, 1), (1, 0, 0), bias=False)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Map (B, inputs, T, H, W) to (B, outputs, T / stride, H / stride, W / stride)."""
        out = self.space(frames)
        return out if self.time is None else self.time(functional.relu(self.norm(out)))


class SpaceTimeBlock(nn.Module):
    """Residual block with two (2+1)D convolutions, group norms and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int, *, time: bool):
        super().__init__()
        self.conv1 = SplitConv(inputs, outputs, stride, time=time)
        self.conv2 = SplitConv(outputs, outputs, 1, time=time)
        self.norm1, self.norm2 = nn.GroupNorm(GROUPS, outputs), nn.GroupNorm(GROUPS, outputs)
        self.shortcut = nn.Conv3d(inputs, outputs, 1, (stride if time else 1, stride, stride), bias=False)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Map (B, inputs, T, H, W) to (B, outputs, T / stride, H / stride, W / stride)."""
        out = self.norm2(self.conv2(functional.relu(self.norm1(self.conv1(frames)))))
        return functional.relu(out + self.shortcut(frames))


class R2Plus1d(nn.Module):
    """Stem, one block per width, mean over time and space, and a linear head.

    Args:
        outputs: Number of outputs per clip.
        time: Whether recordings have several frames; otherwise, use the 2-D version for stills.
    """

    def __init__(self, outputs: int, *, time: bool = True):
        super().__init__()
        self.stem = nn.Conv3d(1, WIDTHS[0], (1, 7, 7), (1, 2, 2), (0, 3, 3), bias=False)
        self.norm = nn.GroupNorm(GROUPS, WIDTHS[0])
        before = (WIDTHS[0], *WIDTHS)
        self.blocks = nn.Sequential(
            *(SpaceTimeBlock(before[n], width, 2 if n else 1, time=time) for n, width in enumerate(WIDTHS))
        )
        self.head = nn.Linear(WIDTHS[-1], outputs)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Map clips (B, 1, T, H, W) in [-1, 1] to outputs (B, outputs)."""
        return self.head(self.blocks(functional.relu(self.norm(self.stem(frames)))).mean((2, 3, 4)))
