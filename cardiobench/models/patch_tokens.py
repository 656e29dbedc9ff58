"""Patch tokens of a recording: tokens of the last block of a network, pooled to a bounded number."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from cardiobench.core.errors import NotApplicable
from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.models.base import Encoder, LoadedModel, SpatialEncoder
from cardiobench.models.contract import transform
from cardiobench.models.device import device_of
from cardiobench.models.pooling import KEEP_TOKENS
from cardiobench.models.tokens import NO_TOKENS

COMPONENT = "patch tokens"
VERSION = 1

MAX_TIMES, MAX_SIDE = 16, 7
LONG_CLIP = 64  # Number of frames of a recording long enough for the maximum number of clips of a model.


class RecordingTokens:
    """An encoder whose vectors are the patch tokens of another encoder, at most 16 x 7 x 7 per recording.

    A recording keeps at most 16 evenly spaced parts. The times of a part are averaged to at most 16 divided by the
    number of parts, its rows and columns to at most 7. Tokens have half precision.

    Attributes:
        encoder: Encoder that returns the tokens.
        parts: Maximum number of parts of a recording.
        grid: Shape (times, rows, columns) of a part's tokens.
        dim: Numbers per token.
    """

    pooling: Literal["mean", "mean_l2"] = "mean"
    dtype_name = "float16"
    no_text_reason = "its patch tokens are kept, which are not in the text space. Leave --pooling tokens out"
    no_tokens_reason = "its patch tokens are kept already, and dense tasks store their own. Leave --pooling tokens out"

    def __init__(self, encoder: Encoder):
        """Measure parts and grid on a black clip.

        Raises:
            NotApplicable: The tokens of the encoder have no position in the frame.
        """
        if not isinstance(encoder, SpatialEncoder):
            raise NotApplicable(NO_TOKENS)
        self.encoder: SpatialEncoder = encoder
        self.name, self.revision, self.warnings = encoder.name, encoder.revision, encoder.warnings
        self.modalities, self.sampling = encoder.modalities, encoder.sampling
        self.cut: Callable[[Clip], list[Clip]] | None = getattr(encoder, "cut", None)
        frames = (encoder.sampling.count if encoder.sampling else None) or LONG_CLIP
        black = Clip(np.zeros((frames, 64, 64, 3), dtype=np.uint8), np.arange(frames), frames)
        parts = transform(encoder, black)
        self.parts = min(len(parts), MAX_TIMES)
        times, rows, columns, self.dim = self._tokens(parts[:1].to(device_of(encoder))).shape[1:]
        self.grid = (min(times, MAX_TIMES // self.parts), min(rows, MAX_SIDE), min(columns, MAX_SIDE))
        facts = {"block": "last", "parts": self.parts, "grid": [*self.grid, self.dim]}
        self.preprocessing: Mapping[str, Any] = {**encoder.preprocessing, KEEP_TOKENS: facts}

    def transform(self, recording: Clip | list[Clip]) -> torch.Tensor:
        """Prepare a recording by the encoder and keep evenly spaced parts, (P, ...)."""
        parts = transform(self.encoder, recording)
        return parts[FrameSampling(count=self.parts, start="uniform").indices(len(parts))]

    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as tokens (N, times * rows * columns, dim), rounded to half precision."""
        tokens = self._tokens(parts).movedim(-1, 1)
        return torch.nn.functional.adaptive_avg_pool3d(tokens, self.grid).flatten(2).mT.half().float()

    def to(self, device: torch.device) -> "RecordingTokens":
        """Move the network and return the encoder."""
        self.encoder.to(device)
        return self

    @torch.no_grad()
    def _tokens(self, parts: torch.Tensor) -> torch.Tensor:
        return self.encoder.encode_tokens(parts).float()


def keep_patches(model: LoadedModel) -> LoadedModel:
    """Return a loaded model whose encoder keeps its patch tokens.

    Raises:
        NotApplicable: The network has no tokens with a position in the frame; the message has the reason.
    """
    try:
        encoder = RecordingTokens(model.encoder)
    except NotApplicable as error:
        raise NotApplicable(
            f"{model.name} has no pooling '{KEEP_TOKENS}': {error}. Choose another --pooling or leave it out."
        ) from None
    return replace(
        model,
        encoder=encoder,
        preprocessing={**model.preprocessing, "pooling": KEEP_TOKENS, **encoder.preprocessing},
        token_pooling=KEEP_TOKENS,
        setting="+".join(filter(None, (f"pooling-{KEEP_TOKENS}", model.setting))),
        code=(*model.code, RecordingTokens),
    )
