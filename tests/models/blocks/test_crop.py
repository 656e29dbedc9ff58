"""Compare crops with the published code and hand-worked values."""

import sys
import zlib

import cv2
import numpy as np
import pytest

from cardiobench.core.errors import MissingExtra
from cardiobench.models.blocks import crop
from cardiobench.models.blocks.crop import crop_and_scale
from tests.models.golden import Golden


@pytest.mark.parametrize(("name", "border"), [("echoclip", "truncate"), ("cardiobench", "round")])
def test_crop_and_scale(name, border):
    golden = Golden("prep_crop_and_scale")
    for case in golden.spec["cases"]:
        frame = golden.described(case["input"])
        got = crop_and_scale(frame, tuple(case["res_wh"]), case["zoom"], border)
        stored = got if case["stored"] == "full" else got[::3, ::3]
        difference = np.abs(stored.astype(int) - golden.arrays[f"{name}/{case['case']}"])
        # Builds of OpenCV round a few values differently; a wrong border rule changes values by up to 255.
        assert difference.max() <= 2 and (difference > 1).mean() <= 1e-3
        if zlib.crc32(got.tobytes()) == case[f"full_crc32_{name}"]:
            assert difference.max() == 0


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
