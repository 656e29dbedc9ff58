"""Compare the measured window that a model sees of a frame with known crops."""

import numpy as np
import pytest
import torch

from cardiobench.core.errors import NotApplicable
from cardiobench.data.media.types import FrameSampling
from cardiobench.embeddings.frame_tokens import Letterbox
from cardiobench.extensions.dense.geometry import WHOLE_SQUARE, Window, measure
from cardiobench.models.blocks.crop import centre, crop_and_scale, resized


class Pictures:
    """Encoder of frames that only has a transform."""

    name, frame_wise = "org/pictures", True
    sampling = FrameSampling(count=16)

    def __init__(self, prepare):
        self.prepare = prepare

    def transform(self, clip):
        return torch.stack([torch.from_numpy(np.ascontiguousarray(self.prepare(frame))) for frame in clip.frames])


def edges(window):
    return np.array([window.left, window.top, window.left + window.width, window.top + window.height])


@pytest.mark.parametrize("side", [112, 301, 640])
def test_full_picture(side):
    """Test a resize to 224 x 224, channels last or first, normalised or not."""
    for prepare in (
        lambda frame: resized(frame, (224, 224), "area"),
        lambda frame: (resized(frame, (224, 224), "cubic").transpose(2, 0, 1) / np.float32(127.5)) - 1,
    ):
        window = measure(Pictures(prepare), side, (14, 14))
        np.testing.assert_allclose(edges(window) * side, [0, 0, side, side], atol=1)


@pytest.mark.parametrize("side", [200, 333, 708])
def test_centre_crop(side):
    """Check the central 224 x 224 of 256 x 256, which loses one sixteenth on every side."""
    window = measure(Pictures(lambda frame: centre(resized(frame, (256, 256), "area"), 224)), side, (7, 7))
    np.testing.assert_allclose(edges(window) * side, np.array([16, 16, 240, 240]) / 256 * side, atol=1)


def test_zoom():
    """Test EchoPrime's crop of one tenth, cut at whole pixels."""
    window = measure(Pictures(lambda frame: crop_and_scale(frame, zoom=0.1)), 305, (7, 7))
    np.testing.assert_allclose(edges(window) * 305, [30, 30, 275, 275], atol=1)


def test_rows_and_columns_are_told_apart():
    """Test a model that sees only the left half of the image at full height."""
    window = measure(Pictures(lambda frame: resized(frame[:, :100], (64, 128), "area")), 200, (8, 4))
    np.testing.assert_allclose(edges(window), [0, 0, 0.5, 1], atol=0.01)


def patches(frame, rows=4, columns=4, size=8):
    """Test patches of 8 x 8 pixels in one row after a header with their number, padded with zeros (as in SigLIP 2)."""
    small = resized(frame, (columns * size, rows * size), "area").astype(np.float32)
    line = small.reshape(rows, size, columns, size, 3).transpose(0, 2, 1, 3, 4).reshape(rows * columns, -1)
    head = np.zeros((1, line.shape[1]), np.float32)
    head[0, :2] = rows, columns
    return np.concatenate([head, line / 255, np.zeros((5, line.shape[1]), np.float32)])


def test_patches_in_one_line():
    window = measure(Pictures(patches), 160, (4, 4))
    np.testing.assert_allclose(edges(window), [0, 0, 1, 1], atol=0.01)


def test_non_crop_views_are_refused():
    def swirled(frame):
        rows, columns = np.indices((64, 64)) / 64
        y = (rows + 0.2 * np.sin(3 * columns)) % 1
        return resized(frame, (64, 64), "area")[(y * 63).astype(int), (columns * 63).astype(int)]

    with pytest.raises(NotApplicable, match="not a scaled crop"):
        measure(Pictures(swirled), 128, (4, 4))
    with pytest.raises(NotApplicable, match="same output for a black and a white"):
        measure(Pictures(lambda frame: np.zeros((8, 8, 3), np.uint8)), 128, (4, 4))


def test_letterboxed_and_unseen_pixels_are_handled():
    box = Letterbox(100, 201)
    assert (box.side, box.top, box.left) == (201, 50, 0)
    square = box.apply(np.full((2, 100, 201, 3), 7, np.uint8))
    assert square.shape == (2, 201, 201, 3)
    assert square.sum() == 2 * 100 * 201 * 3 * 7
    assert square[:, 50:150].min() == 7
    pixels = WHOLE_SQUARE.in_pixels(box)
    assert (pixels.left, pixels.top, pixels.width, pixels.height) == (0, -50, 201, 201)
    assert WHOLE_SQUARE.unseen(box) == 0
    assert Window(0.25, 0, 0.5, 1).unseen(Letterbox(80, 80)) == 0.5
