"""Net1D, the one-dimensional residual network of ECGFounder (Li et al., arXiv 2410.04133)."""

import torch
from torch import nn
from torch.nn import functional

# Channels and residual blocks of each of the seven stages.
STAGES = ((64, 2), (160, 2), (160, 2), (400, 3), (400, 3), (1024, 4), (1024, 4))
KERNEL = 16
GROUP = 16  # Channels per group of the grouped convolutions.
STEM = 64
CLASSES = 150


class SameConv1d(nn.Module):
    """Convolution whose output has ceil(length / stride) samples; an odd zero of the padding goes to the right."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1):
        super().__init__()
        self.kernel, self.stride = kernel, stride
        self.conv = nn.Conv1d(inputs, outputs, kernel, stride, groups=groups)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Map a signal (B, C, L) to (B, outputs, ceil(L / stride))."""
        length = signal.shape[-1]
        wanted = -(-length // self.stride)
        padding = max(0, (wanted - 1) * self.stride + self.kernel - length)
        return self.conv(functional.pad(signal, (padding // 2, padding - padding // 2)))


class Bottleneck(nn.Module):
    """Bottleneck with a grouped convolution and squeeze-and-excitation.

    The published weights contain batch norms that are not used in the computation.
    """

    def __init__(self, inputs: int, outputs: int, stride: int, first: bool):
        super().__init__()
        self.first, self.stride, self.grown = first, stride, outputs - inputs
        self.bn1 = nn.BatchNorm1d(inputs)
        self.conv1 = SameConv1d(inputs, outputs, 1)
        self.bn2 = nn.BatchNorm1d(outputs)
        self.conv2 = SameConv1d(outputs, outputs, KERNEL, stride, groups=outputs // GROUP)
        self.bn3 = nn.BatchNorm1d(outputs)
        self.conv3 = SameConv1d(outputs, outputs, 1)
        self.se_fc1 = nn.Linear(outputs, outputs // 2)
        self.se_fc2 = nn.Linear(outputs // 2, outputs)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Map a signal (B, inputs, L) to (B, outputs, ceil(L / stride))."""
        out = self.conv1(signal if self.first else functional.silu(signal))
        out = self.conv3(functional.silu(self.conv2(functional.silu(out))))
        gate = self.se_fc2(functional.silu(self.se_fc1(out.mean(-1))))
        out = out * torch.sigmoid(gate)[..., None]
        return out + self.shortcut(signal)

    def shortcut(self, signal: torch.Tensor) -> torch.Tensor:
        """Match the input to the output: the length by max pooling, the width by zero channels."""
        if self.stride > 1:
            signal = functional.max_pool1d(functional.pad(signal, (0, 1)), self.stride)
        if self.grown:
            before = self.grown // 2
            signal = functional.pad(signal, (0, 0, before, self.grown - before))
        return signal


class Stage(nn.Module):
    """Stage of blocks with the same width; the first block halves the length."""

    def __init__(self, inputs: int, outputs: int, blocks: int, first: bool):
        super().__init__()
        self.block_list = nn.ModuleList(
            Bottleneck(outputs if index else inputs, outputs, 1 if index else 2, first and not index)
            for index in range(blocks)
        )

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Map a signal (B, inputs, L) to (B, outputs, ceil(L / 2))."""
        for block in self.block_list:
            signal = block(signal)
        return signal


class Net1D(nn.Module):
    """The encoder and its linear head; its state_dict has the keys of `12_lead_ECGFounder.pth`.

    Args:
        leads: 12, or 1 for the single-lead weights.
        classes: Outputs of the head.
    """

    def __init__(self, leads: int = 12, classes: int = CLASSES):
        super().__init__()
        self.first_conv = SameConv1d(leads, STEM, KERNEL, 2)
        self.first_bn = nn.BatchNorm1d(STEM)
        widths = (STEM, *(channels for channels, _ in STAGES))
        self.stage_list = nn.ModuleList(
            Stage(widths[index], channels, blocks, first=not index) for index, (channels, blocks) in enumerate(STAGES)
        )
        self.dense = nn.Linear(widths[-1], classes)

    def feature_map(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode a signal (B, leads, L) as the last stage's output (B, 1024, L / 256 rounded up); 20 columns for 5000 samples."""
        out = functional.silu(self.first_conv(signal))
        for stage in self.stage_list:
            out = stage(out)
        return out

    def tokens(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode a signal (B, leads, L) as tokens (B, T, 1024) in the order of time."""
        return self.feature_map(signal).transpose(1, 2)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Map a signal (B, leads, L) to logits (B, classes), the output of the head for the mean token."""
        return self.dense(self.feature_map(signal).mean(-1))
