"""A randomly initialised vision transformer: the baseline for an untrained architecture."""

import numpy as np
import timm
import torch

from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.models.cards import ModelCard
from cardiobench.models.tokens import last_map
from cardiobench.models.weights import weights_digest

COMPONENT = "adapter random-vit"
VERSION = 1

SEED = 0
SIZE = 112


def random_vit(seed: int = SEED) -> torch.nn.Module:
    """Build a ViT-Ti/16 for frames of 112 x 112 with seeded random weights and mean-pooled patch tokens (N, 192).

    The global random state is not changed.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = timm.create_model("vit_tiny_patch16_224", img_size=SIZE, num_classes=0, global_pool="avg")
    return network.eval().requires_grad_(False)


class RandomVit:
    """Frozen random ViT-Ti/16 on the frames of a clip."""

    modalities = ("echo",)
    dim = 192
    pooling = "mean_l2"
    frame_wise = True
    sampling = FrameSampling(count=16, stride=1, start="key_frame")
    warnings = ()

    def __init__(self, card: ModelCard):
        self.network = random_vit()
        self.name = card.id
        self.revision = weights_digest(self.network)
        self.preprocessing = card.preprocessing

    def transform(self, recording: Clip) -> torch.Tensor:
        """Resize the frames of a clip to (T, 3, 112, 112) in [-1, 1]."""
        frames = torch.from_numpy(np.ascontiguousarray(recording.frames)).permute(0, 3, 1, 2).float()
        frames = torch.nn.functional.interpolate(frames, (SIZE, SIZE), mode="bilinear", antialias=True)
        return frames / 127.5 - 1

    @torch.no_grad()
    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode frames (N, 3, 112, 112) as vectors (N, 192)."""
        return self.network(parts)

    @torch.no_grad()
    def encode_tokens(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode frames (N, 3, 112, 112) as tokens (N, 1, 7, 7, 192)."""
        return last_map(self.network, parts, norm=True)

    def to(self, device: torch.device) -> "RandomVit":
        """Move the network."""
        self.network.to(device)
        return self
