"""Compare the preparation of frames with hand-worked values."""

import sys

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from cardiobench.core.errors import MissingExtra
from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.models.blocks import crop
from cardiobench.models.families.echofm import adapter as echofm
from cardiobench.models.families.echoprime import clip as echoprime_clip
from cardiobench.models.families.panecho import adapter as panecho
from tests.models.echo.conftest import clip_of


def test_crop_by_hand():
    frame = np.random.default_rng(0).integers(0, 256, (100, 160, 3), dtype=np.uint8)
    # From 160 to 100 columns leaves 30 on each side; 10 % of 100 is 10.
    middle = frame[10:90, 40:120]
    np.testing.assert_array_equal(crop.crop_and_scale(frame, (80, 80)), middle)
    enlarged = cv2.resize(middle, (224, 224), interpolation=cv2.INTER_CUBIC)
    np.testing.assert_array_equal(crop.crop_and_scale(frame), enlarged)


def test_border_rule():
    frame = np.arange(16 * 16 * 3, dtype=np.uint8).reshape(16, 16, 3)
    # A tenth of 16 is 1.6: truncated to one pixel or rounded to two.
    np.testing.assert_array_equal(crop.crop_and_scale(frame, (14, 14), border="truncate"), frame[1:-1, 1:-1])
    np.testing.assert_array_equal(crop.crop_and_scale(frame, (12, 12), border="round"), frame[2:-2, 2:-2])


@pytest.mark.parametrize("shape", [(100, 101), (101, 100), (9, 9), (1, 1), (1, 500), (500, 1)])
@pytest.mark.parametrize("border", ["truncate", "round"])
def test_small_frames_are_cropped_where_published_code_fails(shape, border):
    frame = np.full((*shape, 3), 7, dtype=np.uint8)
    assert (crop.crop_and_scale(frame, (32, 24), border=border) == np.full((24, 32, 3), 7)).all()


def test_centre():
    frame = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)
    np.testing.assert_array_equal(crop.centre(frame, 3), frame[1:4, 2:5])


def test_area_shrinks_by_averaging_boxes():
    frame = np.random.default_rng(1).integers(0, 256, (512, 512, 3), dtype=np.uint8)
    means = frame.reshape(256, 2, 256, 2, 3).mean(axis=(1, 3))
    assert np.abs(crop.resized(frame, (256, 256), "area") - means).max() <= 0.5


def test_missing_opencv(monkeypatch):
    crop.opencv.cache_clear()
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(MissingExtra, match=r"'opencv-python-headless'.*cardiobench\[models\]"):
        crop.crop_and_scale(np.zeros((8, 8, 3), dtype=np.uint8))


@pytest.mark.parametrize("count", [1, 3, 16])
def test_absent_frames_of_echoprime_are_zero_and_black_ones_are_not(count):
    clip = echoprime_clip.normalised(echoprime_clip.prepared(np.zeros((count, 50, 70, 3), np.uint8))[None])[0]
    assert clip.shape == (3, 16, 224, 224) and clip.dtype == torch.float32
    black = torch.tensor([-29.110628 / 47.989223, -28.076836 / 46.456997, -29.096405 / 47.20083])
    torch.testing.assert_close(clip[:, :count].amax(dim=(1, 2, 3)), black)
    torch.testing.assert_close(clip[:, :count].amin(dim=(1, 2, 3)), black)
    assert not clip[:, count:].any()


def test_echoprime_normalises_each_channel_of_rgb():
    frames = np.zeros((2, 20, 20, 3), dtype=np.uint8)
    frames[1] = (100, 150, 200)
    clip = echoprime_clip.normalised(echoprime_clip.prepared(frames)[None])[0]
    expected = [(100 - 29.110628) / 47.989223, (150 - 28.076836) / 46.456997, (200 - 29.096405) / 47.20083]
    assert clip[:, 1, 100, 100].tolist() == pytest.approx(expected, rel=1e-6)


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


def test_first_frames_do_not_depend_on_the_key_frame():
    sampling = FrameSampling(count=16, stride=2, start="first")
    assert sampling.indices(100, key_frame=37).tolist() == list(range(0, 32, 2))
    assert sampling.indices(5, key_frame=4).tolist() == [0, 2, 4]
    assert isinstance(clip_of(2), Clip)
