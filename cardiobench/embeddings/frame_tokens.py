"""Tokens of single frames: an encoder on letterboxed stills whose vector is the flattened grid of its last block."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch

from cardiobench.core.errors import NotApplicable
from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.models.base import Encoder, LoadedModel, SpatialEncoder
from cardiobench.models.device import device_of
from cardiobench.models.tokens import NO_TOKENS

COMPONENT = "frame tokens"
VERSION = 1

MAX_GRID = 16
"""Maximum number of rows or columns of a grid; larger grids are pooled to half their size."""


@dataclass(frozen=True)
class Letterbox:
    """A frame of height x width pixels centred in a black square.

    Attributes:
        height: Height of the frame in pixels.
        width: Width of the frame in pixels.
    """

    height: int
    width: int

    @property
    def side(self) -> int:
        """Side of the square, pixels."""
        return max(self.height, self.width)

    @property
    def top(self) -> int:
        """Rows of the square above the frame; if the margin is odd, the larger half is below."""
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
    """Prepare one frame for an encoder: letterboxed, and repeated to the clip length of a video model.

    Args:
        encoder: Encoder of frames or clips.
        frame: Uint8 RGB, (H, W, 3).

    Returns:
        Its part, (1, ...).

    Raises:
        NotApplicable: The encoder makes several parts of a single frame.
    """
    square = Letterbox(*frame.shape[:2]).apply(frame[None])
    one_by_one, sampling = getattr(encoder, "frame_wise", False), encoder.sampling
    count = 1 if one_by_one or sampling is None else sampling.count or 1
    parts = encoder.transform(Clip(np.repeat(square, count, axis=0), np.arange(count), count))
    if len(parts) != 1:
        raise NotApplicable(f"{encoder.name} makes {len(parts)} parts of a single frame, and dense tasks need one")
    return parts


class FrameTokens:
    """Tokens of single frames presented as an encoder, so that extraction and store need no special case.

    A vector is a flattened grid (rows, columns, width) in half precision. The times of a video model, which all see the
    same frame, are averaged; for a moving clip the time of its middle frame is used. A grid of more than 16 rows or
    columns is averaged in blocks of 2 x 2.

    Attributes:
        encoder: Encoder that is read.
        full: Whether to keep a finer grid.
        moving: Whether a video model sees the clip around a frame instead of the frame alone.
        sampling: Sampling of the frames, with the labelled one in the middle.
        grid: Shape (rows, columns) of the tokens.
        width: Numbers per token.
    """

    pooling: Literal["mean", "mean_l2"] = "mean"
    dtype_name = "float16"
    frame_wise = True
    modalities: tuple[str, ...] = ("echo",)

    def __init__(self, encoder: Encoder, full: bool = False, moving: bool = False):
        """Determine the grid from a black frame.

        Raises:
            NotApplicable: The encoder has no tokens with a position in the frame, or with a time in a moving clip.
        """
        if not isinstance(encoder, SpatialEncoder):
            raise NotApplicable(f"{encoder.name}: {getattr(encoder, 'no_tokens_reason', NO_TOKENS)}")
        self.encoder, self.full, self.moving = encoder, full, moving
        self.sampling: FrameSampling | None = _clip_around(encoder) if moving else FrameSampling(count=1)
        self.name, self.revision = encoder.name, encoder.revision
        self.warnings = encoder.warnings
        shape = self._grids(prepare_still(encoder, np.zeros((64, 64, 3), dtype=np.uint8)).to(device_of(encoder))).shape
        self.grid, self.width = (shape[1], shape[2]), shape[3]
        self.dim = self.grid[0] * self.grid[1] * self.width
        facts = {
            "block": "last",
            "frame": "middle of a letterboxed clip" if moving else "letterboxed still",
            "times": "that of the frame" if moving else "mean",
            "grid": [*self.grid, self.width],
        }
        self.preprocessing: Mapping[str, Any] = {**encoder.preprocessing, "tokens": facts}

    def transform(self, recording: Clip) -> torch.Tensor:
        """Prepare a frame, or the clip around it, (1, ...)."""
        if not self.moving:
            return prepare_still(self.encoder, recording.frames[0])
        square = Letterbox(*recording.frames.shape[1:3]).apply(recording.frames)
        return self.encoder.transform(replace(recording, frames=square))

    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as flattened grids, (N, rows * columns * width), rounded to half precision."""
        return self._grids(parts).flatten(1).half().float()

    def to(self, device: torch.device) -> "FrameTokens":
        """Move the network and return the encoder."""
        self.encoder.to(device)
        return self

    @torch.no_grad()
    def _grids(self, parts: torch.Tensor) -> torch.Tensor:
        """Return the float32 grids (N, rows, columns, width)."""
        assert isinstance(self.encoder, SpatialEncoder)
        tokens = self.encoder.encode_tokens(parts)
        grids = (tokens[:, tokens.shape[1] // 2] if self.moving else tokens.mean(dim=1)).movedim(-1, 1)
        rows, columns = grids.shape[2:]
        if max(rows, columns) > MAX_GRID and not self.full:
            grids = torch.nn.functional.adaptive_avg_pool2d(grids, (-(-rows // 2), -(-columns // 2)))
        return grids.movedim(1, -1)


def _clip_around(encoder: Encoder) -> FrameSampling:
    """Return the clip that an encoder needs; raises `NotApplicable` if none of its token times corresponds to a frame."""
    if reason := getattr(encoder, "no_times_reason", ""):
        raise NotApplicable(f"{encoder.name}: {reason}")
    sampling = encoder.sampling
    if getattr(encoder, "frame_wise", False) or sampling is None or (sampling.count or 1) == 1:
        raise NotApplicable(
            f"{encoder.name} encodes single frames, so a moving clip contains no more information than a still frame"
        )
    return sampling


def token_model(model: LoadedModel, full: bool = False, moving: bool = False) -> LoadedModel:
    """Return a loaded model whose encoder gives the tokens of single frames.

    Args:
        model: Loaded.
        full: Whether to keep fine grids.
        moving: Whether to use the clip around a frame.

    Raises:
        NotApplicable: The model has no tokens with a position in the frame, or with a time in a moving clip.
    """
    encoder = FrameTokens(model.encoder, full, moving)
    code = (*model.code, FrameTokens)
    return replace(model, encoder=encoder, preprocessing={**model.preprocessing, **encoder.preprocessing}, code=code)
