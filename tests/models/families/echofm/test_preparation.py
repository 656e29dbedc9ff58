"""Compare the preparation of EchoFM with hand-worked values."""

import numpy as np
import pytest
import torch
from PIL import Image

from cardiobench.models.families.echofm import adapter as echofm
from tests.models.encoders import clip_of


def test_echofm_plays_a_short_clip_again():
    frames = clip_of(5, 30, 40).frames
    prepared = echofm.prepared(frames)
    assert prepared.shape == (32, 224, 224, 3) and prepared.dtype == torch.uint8
    first = np.asarray(Image.fromarray(frames[0]).resize((224, 224), Image.Resampling.BILINEAR))
    for number in (0, 5, 30):
        np.testing.assert_array_equal(prepared[number], first)
    assert not torch.equal(prepared[31], prepared[30])
    torch.testing.assert_close(prepared[31], prepared[1])
    levels = echofm.normalised(prepared[None])
    assert levels.shape == (1, 3, 32, 224, 224)
    assert levels[0, 2, 4, 9, 8].item() == pytest.approx(int(prepared[4, 9, 8, 2]) / 255)
    assert torch.equal(echofm.prepared(clip_of(40, 20, 20).frames), echofm.prepared(clip_of(40, 20, 20).frames[:32]))
