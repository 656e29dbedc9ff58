"""Check that masking removes text from images but keeps ultrasound."""

import dataclasses

import numpy as np
import pytest

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.overlays import mask_overlays
from cardiobench.data.media.types import Clip


def cine(frames=4, size=24):
    """Return moving tissue in the middle, static white text in the corner, and a black background."""
    rng = np.random.default_rng(0)
    pixels = np.zeros((frames, size, size, 3), np.uint8)
    pixels[:, 8:20, 8:20] = rng.integers(30, 200, (frames, 12, 12, 1))
    pixels[:, 1:4, 1:9] = 255 - rng.integers(0, 6, (frames, 3, 8, 1))  # Includes compression noise.
    return Clip(pixels, np.arange(frames), frames)


def test_pixels_outside_the_declared_regions_are_blackened():
    clip = dataclasses.replace(cine(), regions=((8, 8, 20, 16), (8, 16, 20, 99)))
    masked = mask_overlays(clip, "a").frames
    np.testing.assert_array_equal(masked[:, 8:20, 8:20], clip.frames[:, 8:20, 8:20])
    outside = np.ones((24, 24), bool)
    outside[8:, 8:20] = False
    assert not masked[:, outside].any() and clip.frames[:, 1:4, 1:9].all(), "the recording itself is unchanged"


def test_constant_pixels_are_masked():
    masked = mask_overlays(cine(), "a").frames
    assert not masked[:, 1:4, 1:9].any()
    assert (masked[:, 8:20, 8:20] == cine().frames[:, 8:20, 8:20]).mean() > 0.95


def test_one_frame_without_regions_is_refused():
    with pytest.raises(BadMedia, match=r"99_0004\.dcm declares no ultrasound regions"):
        mask_overlays(cine(frames=1), "99_0004.dcm")
