"""xresnet1d101, the one-dimensional residual network of ECGFM-KED (fastai's xresnet with narrower stages)."""

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional

from cardiobench.core.errors import BadModel

# Inner channels and bottlenecks of each of the four stages.
STAGES = ((64, 3), (128, 4), (128, 23), (192, 3))
EXPANSION = 4
STEM = (32, 32, 64)
KERNEL = 5
LEADS = 12
WIDTH = EXPANSION * STAGES[-1][0]
SECOND_NAME, FIRST_NAME = ".convpath.0.", ".convs."


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, *, activation: bool = True) -> nn.Sequential:
    """Build a convolution without bias, its batch norm and an optional ReLU."""
    layers = [nn.Conv1d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm1d(outputs)]
    return nn.Sequential(*layers, *([nn.ReLU()] if activation else []))


class XResBlock(nn.Module):
    """Bottleneck of convolutions with 1, 5 and 1 taps.

    The shortcut has average pooling and a 1-tap convolution if needed.
    """

    def __init__(self, inputs: int, inner: int, stride: int):
        super().__init__()
        outputs = EXPANSION * inner
        self.convs = nn.Sequential(
            convolution(inputs, inner, 1),
            convolution(inner, inner, KERNEL, stride),
            convolution(inner, outputs, 1, activation=False),
        )
        self.idpath = nn.Sequential(
            *([nn.AvgPool1d(2, ceil_mode=True)] if stride > 1 else []),
            *([convolution(inputs, outputs, 1, activation=False)] if inputs != outputs else []),
        )

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Map a signal (B, inputs, L) to (B, outputs, L / stride rounded up)."""
        return functional.relu(self.convs(signal) + self.idpath(signal))


class XResNet1d101(nn.Sequential):
    """The encoder without a head; modules 0-2 are the stem, 3 the max pooling, 4-7 the stages."""

    def __init__(self) -> None:
        widths = (LEADS, *STEM)
        stem = [convolution(widths[place], width, KERNEL, 1 if place else 2) for place, width in enumerate(STEM)]
        stages, inputs = [], STEM[-1]
        for place, (inner, blocks) in enumerate(STAGES):
            first = XResBlock(inputs, inner, 2 if place else 1)
            inputs = EXPANSION * inner
            stages.append(nn.Sequential(first, *(XResBlock(inputs, inner, 1) for _ in range(blocks - 1))))
        super().__init__(*stem, nn.MaxPool1d(3, 2, 1), *stages)

    def tokens(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode a signal (B, 12, L) as tokens (B, L / 32 rounded up, 768) in the order of time: 32 for 1000 samples."""
        return self(signal).transpose(1, 2)


def published_keys(state: Mapping[str, torch.Tensor], what: str) -> dict[str, torch.Tensor]:
    """Return each tensor under a single name; the published code registers the convolutions of bottlenecks twice.

    Raises:
        BadModel: The two names of a tensor have different values, so it is unclear which was trained.
    """
    own = {name: tensor for name, tensor in state.items() if SECOND_NAME not in name}
    for name, tensor in state.items():
        first = own.setdefault(name.replace(SECOND_NAME, FIRST_NAME), tensor)
        if not torch.equal(first, tensor):
            raise BadModel(
                f"{what}: {name} and {name.replace(SECOND_NAME, FIRST_NAME)} are one tensor in the published network and hold "
                f"different values here. The file is damaged: download it again."
            )
    return own
