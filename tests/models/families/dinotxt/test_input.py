"""Compare the frames that enter dino.txt with an independent computation."""

import numpy as np
from PIL import Image

from tests.models.entering import (
    FROM_KEY,
    entering,
    seen_by,
    video,
)


def test_dinotxt(loaded):
    encoder, frames = loaded("facebookresearch/dinotxt-vitl16"), video(45, 48, 66)
    got = entering(encoder.network.network, encoder, seen_by(encoder, frames)).numpy()
    wanted = []
    for frame in frames[FROM_KEY]:
        picture = Image.fromarray(frame).resize((352, 256), Image.Resampling.BICUBIC)
        levels = np.asarray(picture.crop((64, 16, 288, 240)), dtype=np.float64) / 255
        wanted.append(((levels - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)).transpose(2, 0, 1))
    assert np.abs(got - np.stack(wanted)).mean() < 0.02
