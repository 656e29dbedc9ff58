"""Vision networks of EchoPrime: MViTv2-S of torchvision for clips and ConvNeXt-B for the view."""

import torch
from torch import nn
from torchvision.models import convnext_base
from torchvision.models.video import MViT, mvit_v2_s

from cardiobench.models.tokens import on_grid

FRAMES, SIZE = 16, 224
WIDTH = 512  # Numbers per clip.


def video_encoder() -> MViT:
    """Build the network from clips (N, 3, 16, 224, 224) to vectors (N, 512).

    Source: Li et al., MViTv2, CVPR 2022.
    """
    return mvit_v2_s(num_classes=WIDTH)


def video_tokens(network: MViT, clips: torch.Tensor) -> torch.Tensor:
    """Encode clips (N, 3, 16, 224, 224) as the normalised tokens of the last block, (N, 8, 7, 7, 768), without the class token."""
    tokens = network.pos_encoding(network.conv_proj(clips).flatten(2).transpose(1, 2))
    grid = (network.pos_encoding.temporal_size, *network.pos_encoding.spatial_size)
    for block in network.blocks:
        tokens, grid = block(tokens, grid)
    return on_grid(network.norm(tokens), grid)


def view_classifier(views: int) -> nn.Module:
    """Build the network from frames (N, 3, 224, 224) to logits (N, views).

    Source: Liu et al., A ConvNet for the 2020s, CVPR 2022.
    """
    return convnext_base(num_classes=views)
