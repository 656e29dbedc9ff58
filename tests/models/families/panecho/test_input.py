"""Compare the array that enters PanEcho with an independent computation."""

import numpy as np
import pytest
import torch

from cardiobench.data.media.types import Clip
from tests.models.entering import entering, seen_by, video
from tests.models.golden import Golden


@pytest.mark.slow
def test_panecho(loaded):
    """Test four consecutive clips of 16 frames, evenly spaced; the golden clips are in BGR order."""
    golden = Golden("prep_panecho_clip")
    encoder = loaded("CarDS-Yale/PanEcho", "one_clip")
    for case in golden.spec["cases"]:
        used = case["frames_used"]
        frames = golden.described(case["input"])[used[0] : used[-1] + 1, ..., ::-1]
        got = entering(encoder.network.network, encoder, seen_by(encoder, np.ascontiguousarray(frames)))[0].numpy()
        difference = np.abs(got[:, :, 4::12, 4::12] - golden.arrays[f"out/{case['case']}[:, :, 4::12, 4::12]"])
        assert difference.max() <= 0.02 and (difference > 1e-4).mean() <= 1e-3
    frames = video(46, 48, 66)
    several = loaded("CarDS-Yale/PanEcho")
    got = several.transform(seen_by(several, frames))
    for clip, first in zip(got, (0, 10, 20, 30), strict=True):
        one = Clip(frames[first : first + 16], np.arange(first, first + 16), 46)
        assert torch.equal(clip, encoder.transform(one)[0])
