"""Tokens of single frames: an encoder on letterboxed stills whose vector is the flattened grid of its last block."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch

from cardiobench.core.errors import NotApplicable
from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.models.base import Encoder, LoadedModel, SpatialEncoder
from cardiobench.models.tokens import NO_TOKENS

MAX_GRID = 16
"""Rows or columns above which a grid is pooled to half its size."""


@dataclass(frozen=True)
class Letterbox:
    """A frame of height x width pixels in the middle of a black square.

    Attributes:
        height: of the frame, pixels.
        width: of the frame, pixels.
    """

    height: int
    width: int

    @property
    def side(self) -> int:
        """Side of the square, pixels."""
        return max(self.height, self.width)

    @property
    def top(self) -> int:
        """Rows of the square above the frame; of an odd margin the larger half is below."""
        return (self.side - self.height) // 2

    @property
    def left(self) -> int:
        """Columns of the square left of the frame."""
        return (self.side - self.width) // 2

    def apply(self, frames: np.ndarray) -> np.ndarray:
        """Pad frames (T, height, width, 3) to (T, side, side, 3)."""
        square = np.zeros((len(frames), self.side, self.side, 3), dtype=frames.dtype)
        square[:, self.top : self.top + self.height, self.left : self.left + self.width] = frames
        return square


def prepare_still(encoder: Encoder, frame: np.ndarray) -> torch.Tensor:
    """Prepare one frame for an encoder: letterboxed, and repeated to the length of the clips that a video model wants.

    Args:
        encoder: of frames or clips.
        frame: uint8 RGB, (H, W, 3).

    Returns:
        Its part, (1, ...).

    Raises:
        NotApplicable: the encoder makes several parts of a single frame.
    """
    square = Letterbox(*frame.shape[:2]).apply(frame[None])
    one_by_one, sampling = getattr(encoder, "frame_wise", False), encoder.sampling
    count = 1 if one_by_one or sampling is None else sampling.count or 1
    parts = encoder.transform(Clip(np.repeat(square, count, axis=0), np.arange(count), count))
    if len(parts) != 1:
        raise NotApplicable(f"{encoder.name} makes {len(parts)} parts of a single frame, and dense tasks need one")
    return parts


class FrameTokens:
    """The tokens of single frames as an encoder of its own: what extraction and store take it for.

    A vector is a grid (rows, columns, width) in one line, in half precision. The times of a video model, which all see
    the same frame, are averaged. A grid of more than 16 rows or columns is averaged in blocks of 2 x 2.

    Attributes:
        encoder: that is read.
        full: keep a finer grid as it is.
        grid: (rows, columns) of the tokens.
        width: numbers per token.
    """

    pooling: Literal["mean", "mean_l2"] = "mean"
    frame_wise = True
    sampling: FrameSampling | None = FrameSampling(count=1)
    modalities: tuple[str, ...] = ("echo",)

    def __init__(self, encoder: Encoder, full: bool = False):
        """Measure the grid on a black frame.

        Raises:
            NotApplicable: the encoder has no tokens with a place in the frame.
        """
        if not isinstance(encoder, SpatialEncoder):
            raise NotApplicable(f"{encoder.name}: {getattr(encoder, 'no_tokens_reason', NO_TOKENS)}")
        self.encoder, self.full = encoder, full
        self.name, self.revision = encoder.name, encoder.revision
        self.warnings = encoder.warnings
        shape = self._grids(prepare_still(encoder, np.zeros((64, 64, 3), dtype=np.uint8)).to(_device(encoder))).shape
        self.grid, self.width = (shape[1], shape[2]), shape[3]
        self.dim = self.grid[0] * self.grid[1] * self.width
        facts = {"block": "last", "frame": "letterboxed still", "times": "mean", "grid": [*self.grid, self.width]}
        self.preprocessing: Mapping[str, Any] = {**encoder.preprocessing, "tokens": facts}

    def transform(self, recording: Clip) -> torch.Tensor:
        """Prepare the first frame of a clip, (1, ...)."""
        return prepare_still(self.encoder, recording.frames[0])

    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as grids in one line, (N, rows * columns * width), rounded to half precision."""
        return self._grids(parts).flatten(1).half().float()

    def to(self, device: torch.device) -> "FrameTokens":
        """Move the network and return the encoder."""
        self.encoder.to(device)
        return self

    @torch.no_grad()
    def _grids(self, parts: torch.Tensor) -> torch.Tensor:
        """Return the grids (N, rows, columns, width), float32."""
        assert isinstance(self.encoder, SpatialEncoder)
        grids = self.encoder.encode_tokens(parts).mean(dim=1).movedim(-1, 1)
        rows, columns = grids.shape[2:]
        if max(rows, columns) > MAX_GRID and not self.full:
            grids = torch.nn.functional.adaptive_avg_pool2d(grids, (-(-rows // 2), -(-columns // 2)))
        return grids.movedim(1, -1)


def _device(encoder: Encoder) -> torch.device:
    """Return the device of an encoder's network; the CPU for one without parameters."""
    network = getattr(encoder, "network", None)
    parameter = next(network.parameters(), None) if isinstance(network, torch.nn.Module) else None
    return torch.device("cpu") if parameter is None else parameter.device


def token_model(model: LoadedModel, full: bool = False) -> LoadedModel:
    """Return a loaded model whose encoder gives the tokens of single frames.

    Raises:
        NotApplicable: the model has no tokens with a place in the frame.
    """
    encoder = FrameTokens(model.encoder, full)
    code = (*model.code, FrameTokens)
    return replace(model, encoder=encoder, preprocessing={**model.preprocessing, **encoder.preprocessing}, code=code)
