"""PanEcho: ConvNeXt-T on the frames of a clip, a transformer over time, and one linear head for each of 40 findings."""

import torch
from torch import nn
from torchvision.models import convnext_tiny

from cardiobench.models.families.panecho.heads import HEADS

FRAMES = 16
DIM = 768


class PanEcho(nn.Module):
    """Network from clips to embeddings, and from embeddings to the raw outputs of all heads.

    Source: Holste et al., PanEcho, medRxiv 2024.11.16.24317431.
    """

    def __init__(self):
        super().__init__()
        self.encoder = FrameTransformer()
        for head in HEADS:
            self.add_module(f"{head.name}_head", nn.Sequential(nn.Dropout(0.25), nn.Linear(DIM, head.width)))

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Map clips (N, 3, 16, H, W) to embeddings (N, 768)."""
        return self.encoder(clips)

    def maps(self, clips: torch.Tensor) -> torch.Tensor:
        """Map clips (N, 3, 16, H, W) to the last feature maps of their 16 images, (N, 16, H/32, W/32, 768)."""
        maps = self.encoder.encoder.model.features(as_images(clips))
        return maps.movedim(1, -1).unflatten(0, (len(clips), -1))

    def outputs(self, embeddings: torch.Tensor) -> torch.Tensor:
        """Encode embeddings (N, 768) as the outputs of the heads before any activation, in the order of `HEADS`.

        Returns an array (N, 58).
        """
        return torch.cat([self.get_submodule(f"{head.name}_head")(embeddings) for head in HEADS], dim=1)


class FrameTransformer(nn.Module):
    """Clip encoder: frame features with time encoding, four layers of attention over time, and mean over time."""

    def __init__(self):
        super().__init__()
        self.encoder = FrameEncoder()
        layer = nn.TransformerEncoderLayer(DIM, nhead=8, dim_feedforward=DIM, dropout=0.0, batch_first=True)
        self.transformer = nn.TransformerEncoder(layer, num_layers=4, enable_nested_tensor=False)
        self.time_encoder = TimeCode()

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Map clips (N, 3, 16, H, W) to embeddings (N, 768)."""
        frames = self.encoder(as_images(clips)).unflatten(0, (len(clips), clips.shape[2]))
        return self.transformer(self.time_encoder(frames)).mean(dim=1)


def as_images(clips: torch.Tensor) -> torch.Tensor:
    """Return the images (N * 16, 3, H, W) that the frame encoder receives for clips (N, 3, 16, H, W).

    The network was trained on planes in memory order, channel by channel. Image i contains the planes 3i, 3i + 1 and 3i
    + 2 of a clip, that is, three times of one channel instead of three channels of one time. The axes are therefore not
    permuted.
    """
    return clips.reshape(-1, 3, *clips.shape[3:])


class FrameEncoder(nn.Module):
    """ConvNeXt-T without a classifier."""

    def __init__(self):
        super().__init__()
        self.model = convnext_tiny()
        self.model.classifier[2] = nn.Identity()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (N, 3, H, W) to features (N, 768)."""
        return self.model(images)


class TimeCode(nn.Module):
    """Fixed time encoding: sine and cosine of the frame number at decreasing frequencies, added to the features."""

    pe: torch.Tensor

    def __init__(self):
        super().__init__()
        self.register_buffer("pe", time_code())

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Transform tokens (N, 16, 768); the shape stays the same."""
        return frames + self.pe


def time_code() -> torch.Tensor:
    """Compute the temporal position table (1, 16, 768): sine in the even columns, cosine in the odd ones."""
    angles = torch.arange(FRAMES)[:, None] * 10000.0 ** (-torch.arange(0, DIM, 2) / DIM)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[None]
