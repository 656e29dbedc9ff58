"""Store decoded recordings like embeddings, so that each is decoded once for all epochs and seeds."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch

from cardiobench.data.media.resample import resample
from cardiobench.data.media.types import LEADS, Clip, Ecg, FrameSampling
from cardiobench.models.cards import ModelCard

COMPONENT = "inputs of scratch"
VERSION = 1

PIECES_A_SECOND = 4
FRAMES, STRIDE, SIZE = 64, 2, 112


class _Inputs:
    """Base class of both modalities, which passes recordings on without encoding.

    Attributes:
        trained_by: Name of the protocol that trains the network.
    """

    trained_by = "scratch"
    pooling: Literal["mean"] = "mean"
    revision = "1"
    warnings: tuple[str, ...] = ()
    no_text_reason = "a network trained from scratch has no text tower"

    def __init__(self, card: ModelCard):
        self.name = card.id
        self.preprocessing: Mapping[str, Any] = card.preprocessing

    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        """Return parts (N, ...) unchanged as vectors (N, values)."""
        return parts.flatten(1)

    def to(self, device: torch.device) -> "_Inputs":
        """Return self."""
        return self


class SignalInputs(_Inputs):
    """ECG in millivolts at a fixed rate, cut into quarter-second pieces without the incomplete last one."""

    modalities = ("ecg",)
    sampling = None

    def __init__(self, card: ModelCard):
        super().__init__(card)
        self.rate = int(card.preprocessing["fs"])
        self.piece = self.rate // PIECES_A_SECOND
        self.dim = self.piece * len(LEADS)

    def transform(self, recording: Ecg) -> torch.Tensor:
        """Return pieces, (P, samples, 12), with NaN replaced by 0."""
        signal = np.nan_to_num(np.asarray(recording.signal, dtype=np.float32), posinf=0.0, neginf=0.0)
        signal = resample(signal, recording.fs, self.rate)
        absent = max(self.piece - len(signal), 0)
        signal = np.pad(signal, ((0, absent), (0, 0)))
        count = len(signal) // self.piece
        pieces = signal[: count * self.piece].reshape(count, self.piece, len(LEADS))
        return torch.from_numpy(np.ascontiguousarray(pieces, dtype=np.float32))


class FrameInputs(_Inputs):
    """Grey frames of 112 x 112 pixels, every second of the first 128, as integers that float16 represents exactly."""

    modalities = ("echo",)
    sampling = FrameSampling(count=FRAMES, stride=STRIDE, start="first")
    dtype_name = "float16"
    dim = SIZE * SIZE

    def transform(self, recording: Clip) -> torch.Tensor:
        """Return frames, (T, 112, 112), from 0 to 255."""
        frames = torch.from_numpy(np.ascontiguousarray(recording.frames)).float().mean(-1)[:, None]
        frames = torch.nn.functional.interpolate(frames, (SIZE, SIZE), mode="bilinear", antialias=True)
        return frames[:, 0].round().clamp(0, 255)
