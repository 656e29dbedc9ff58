"""Raw pixels as tokens: a baseline for patch read-outs without a network."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from cardiobench.data.media.types import Clip
from cardiobench.models.base import LoadedModel
from cardiobench.models.custom import BaseEncoder, loaded

COMPONENT = "adapter pixel-patches"
VERSION = 1

SIZE, PATCH = 224, 16


class PixelPatches(BaseEncoder):
    """Encoder whose tokens are the 16 x 16 grey levels of each patch of a 224 x 224 frame."""

    name = "cardiobench/pixel-patches"
    revision = str(VERSION)
    frame_wise = True
    preprocessing: Mapping[str, Any] = {"size": SIZE, "patch": PATCH, "colour": "grey"}

    def transform(self, recording: Clip) -> torch.Tensor:
        """Resize frames to (T, 224, 224), grey levels in [0, 1]."""
        grey = torch.from_numpy(recording.frames.mean(axis=-1, dtype=np.float32))[:, None]
        small = torch.nn.functional.interpolate(grey, (SIZE, SIZE), mode="bilinear", antialias=True)
        return small[:, 0] / 255

    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        """Return the mean patch of frames (N, 224, 224). The shape is (N, 256)."""
        return self.encode_tokens(parts).mean(dim=(1, 2, 3))

    def encode_tokens(self, parts: torch.Tensor) -> torch.Tensor:
        """Cut frames (N, 224, 224) into patches. Returns an array (N, 1, 14, 14, 256)."""
        return parts.unfold(1, PATCH, PATCH).unfold(2, PATCH, PATCH).flatten(3)[:, None]


def pixel_patches() -> LoadedModel:
    """Return raw pixels as a loaded model."""
    return loaded(PixelPatches(), "raw pixels, a floor", "fp32", torch.device("cpu"))
