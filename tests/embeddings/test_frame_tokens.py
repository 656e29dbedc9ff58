"""Test tokens of moving clips at the time of the labelled frame."""

import numpy as np
import pytest
import torch

from cardiobench.core.errors import NotApplicable
from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.embeddings.frame_tokens import FrameTokens
from cardiobench.models.baselines.pixel_patches import pixel_patches


class Times:
    """Video encoder of six frames whose tokens are the mean grey values of pairs of frames."""

    name, revision, warnings, dim, pooling = "org/times", "1", (), 1, "mean"
    preprocessing, modalities = {}, ("echo",)
    sampling = FrameSampling(count=6, stride=2, start="first")

    def transform(self, clip):
        return torch.from_numpy(clip.frames.astype(np.float32))[None]

    def encode(self, parts):
        return parts.mean(dim=(1, 2, 3, 4))[:, None]

    def encode_tokens(self, parts):
        times = parts.mean(dim=(2, 3, 4)).unflatten(1, (3, 2)).mean(dim=2)
        return times[:, :, None, None, None]

    def to(self, device):
        return self


def test_time_of_the_middle_frame():
    frames = np.repeat(np.arange(0, 60, 10, dtype=np.uint8), 12).reshape(6, 2, 2, 3)
    clip = Clip(frames, np.arange(6), 6)
    moving, still = FrameTokens(Times(), moving=True), FrameTokens(Times())
    assert moving.sampling == Times.sampling and still.sampling == FrameSampling(count=1)
    assert moving.encode(moving.transform(clip)).item() == 25, "frames 2 and 3"
    assert still.encode(still.transform(Clip(frames[3:4], np.arange(1), 6))).item() == 30
    assert moving.preprocessing["tokens"] != still.preprocessing["tokens"]


def test_models_without_frame_times_are_refused():
    with pytest.raises(NotApplicable, match="encodes single frames"):
        FrameTokens(pixel_patches().encoder, moving=True)
    mixing = Times()
    mixing.no_times_reason = "each of its images mixes three frames of a clip"
    with pytest.raises(NotApplicable, match="mixes three frames"):
        FrameTokens(mixing, moving=True)
