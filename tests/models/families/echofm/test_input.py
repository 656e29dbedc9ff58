"""Compare the array that enters EchoFM with an independent computation."""

import numpy as np
import pytest
from PIL import Image

from tests.models.entering import (
    entering,
    seen_by,
    video,
)


@pytest.mark.slow
@pytest.mark.parametrize("count", [45, 9])
def test_echofm(loaded, count):
    """Check the first 32 frames in RGB order in 0..1, repeated from the start if there are fewer."""
    encoder, frames = loaded("sekeun/EchoFM"), video(count, 48, 66)
    got = entering(encoder.network.network.patch_embed, encoder, seen_by(encoder, frames))[0].numpy()
    chosen = [frames[number % min(count, 32)] for number in range(32)]
    small = [np.asarray(Image.fromarray(frame).resize((224, 224), Image.Resampling.BILINEAR)) for frame in chosen]
    np.testing.assert_allclose(got, (np.stack(small) / 255).transpose(3, 0, 1, 2), atol=1e-6)
