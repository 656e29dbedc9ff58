"""Compare the array that enters EfficientNet-Lite0 with an independent computation."""

import numpy as np
import torch
from PIL import Image

from tests.models.entering import entering, seen_by, video

NAME = "ml-illustrated/efficientnet-lite0"


def test_efficientnet_lite0(loaded):
    """Test 16 frames, each 256 pixels at the shorter side, bicubic, its centre, and grey levels from -127/128 to 1."""
    encoder, frames = loaded(NAME), video(45, 320, 400)
    clip = seen_by(encoder, frames)
    got = entering(encoder.network.network, encoder, clip)
    assert got.shape == (16, 3, 224, 224)
    resized = np.asarray(Image.fromarray(clip.frames[0]).resize((320, 256), Image.BICUBIC), np.float32)
    wanted = (resized[16:240, 48:272] - 127) / 128
    torch.testing.assert_close(got[0], torch.from_numpy(wanted).permute(2, 0, 1), rtol=0, atol=1e-4)
