"""Compare the preparation of PanEcho with the published code and hand-worked values."""

import numpy as np
import pytest
import torch

from cardiobench.models.families.panecho import adapter as panecho
from tests.models.golden_clips import check_clips


@pytest.mark.slow
def test_clips_equal_the_published_code():
    def prepared(case, frames):
        used = case["frames_used"]
        return panecho.normalised(panecho.prepared(frames[used[0] : used[-1] + 1])[None])[0]

    check_clips("prep_panecho_clip", prepared, 0.02)


def test_panecho_repeats_last_frame_and_normalises_bgr_as_rgb():
    frames = np.zeros((3, 40, 40, 3), dtype=np.uint8)
    frames[2] = (51, 102, 204)
    prepared = panecho.prepared(frames)
    assert prepared.shape == (16, 224, 224, 3) and prepared.dtype == torch.uint8
    assert [int(frame[0, 0, 2]) for frame in prepared] == [0, 0, *[204] * 14]
    clip = panecho.normalised(prepared[None])[0]
    expected = [(0.2 - 0.485) / 0.229, (0.4 - 0.456) / 0.224, (0.8 - 0.406) / 0.225]
    assert clip[:, 15, 7, 7].tolist() == pytest.approx(expected, rel=1e-5)


def test_starts_of_panecho_are_even_over_the_recording():
    assert panecho.starts(76, 4).tolist() == [0, 20, 40, 60]
    assert panecho.starts(18, 4).tolist() == [0, 1, 2]
    assert panecho.starts(16, 4).tolist() == panecho.starts(1, 4).tolist() == [0]
    assert panecho.starts(200, 1).tolist() == [0]
