"""ConvNeXt: a convolutional network for single images, the frame network of PanEcho and EchoPrime's view classifier."""

from collections.abc import Sequence

import torch
from torch import nn

EPS = 1e-6
TINY = {"depths": (3, 3, 9, 3), "dims": (96, 192, 384, 768)}
BASE = {"depths": (3, 3, 27, 3), "dims": (128, 256, 512, 1024)}


class ConvNeXt(nn.Module):
    """Four stages of blocks, global average, LayerNorm and, where classes are wanted, a linear classifier.

    The names of its tensors are those of torchvision's `convnext_*`, which the published checkpoints were made with.
    Source: Liu et al., A ConvNet for the 2020s, CVPR 2022.

    Args:
        depths: blocks of each stage.
        dims: channels of each stage.
        classes: outputs; None for the normalised features themselves.
    """

    def __init__(self, depths: Sequence[int], dims: Sequence[int], classes: int | None = None):
        super().__init__()
        stages: list[nn.Module] = [nn.Sequential(nn.Conv2d(3, dims[0], kernel_size=4, stride=4), ChannelNorm(dims[0]))]
        for number, (depth, dim) in enumerate(zip(depths, dims, strict=True)):
            if number:
                before = dims[number - 1]
                stages.append(nn.Sequential(ChannelNorm(before), nn.Conv2d(before, dim, kernel_size=2, stride=2)))
            stages.append(nn.Sequential(*(Block(dim) for _ in range(depth))))
        self.features = nn.Sequential(*stages)
        head = [ChannelNorm(dims[-1]), nn.Flatten(1)]
        self.classifier = nn.Sequential(*head, *([] if classes is None else [nn.Linear(dims[-1], classes)]))

    def pooled(self, images: torch.Tensor) -> torch.Tensor:
        """Images (N, 3, H, W) to the global average of the last stage, (N, dims[-1], 1, 1)."""
        return self.features(images).mean(dim=(2, 3), keepdim=True)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images (N, 3, H, W) to logits (N, classes), or to features (N, dims[-1]) where there are no classes."""
        return self.classifier(self.pooled(images))


class ChannelNorm(nn.LayerNorm):
    """LayerNorm over the channels of (N, C, H, W)."""

    def __init__(self, channels: int):
        super().__init__(channels, eps=EPS)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Same shape."""
        return super().forward(images.movedim(1, -1)).movedim(-1, 1)


class MoveAxis(nn.Module):
    """One axis to another place."""

    def __init__(self, source: int, target: int):
        super().__init__()
        self.source, self.target = source, target

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Same numbers, another order of axes."""
        return images.movedim(self.source, self.target)


class Block(nn.Module):
    """Depthwise convolution, then a perceptron at every pixel, scaled for each channel and added to the input."""

    def __init__(self, dim: int):
        super().__init__()
        self.layer_scale = nn.Parameter(torch.full((dim, 1, 1), 1e-6))
        self.block = nn.Sequential(
            nn.Conv2d(dim, dim, kernel_size=7, padding=3, groups=dim),
            MoveAxis(1, -1),
            nn.LayerNorm(dim, eps=EPS),
            nn.Linear(dim, 4 * dim),
            nn.GELU(),
            nn.Linear(4 * dim, dim),
            MoveAxis(-1, 1),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(N, dim, H, W), same shape."""
        return images + self.layer_scale * self.block(images)
