"""EchoPrime's networks for pictures: torchvision's MViTv2-S for clips and its ConvNeXt-B for the view."""

from torch import nn
from torchvision.models import convnext_base
from torchvision.models.video import mvit_v2_s

FRAMES, SIZE = 16, 224
WIDTH = 512  # numbers per clip


def video_encoder() -> nn.Module:
    """Build the network of clips (N, 3, 16, 224, 224) to vectors (N, 512).

    Source: Li et al., MViTv2, CVPR 2022.
    """
    return mvit_v2_s(num_classes=WIDTH)


def view_classifier(views: int) -> nn.Module:
    """Build the network of frames (N, 3, 224, 224) to logits (N, views).

    Source: Liu et al., A ConvNet for the 2020s, CVPR 2022.
    """
    return convnext_base(num_classes=views)
