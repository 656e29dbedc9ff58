"""Test cells of a grid: areas by counting, the best mask that a grid can express, and points mapped there and back."""

import numpy as np
import pytest

from cardiobench.embeddings.frame_tokens import Letterbox
from cardiobench.extensions.dense.cells import CellGrid
from cardiobench.extensions.dense.geometry import WHOLE_SQUARE, Window


def test_coverage_by_hand():
    """Test a frame of 2 x 4 in a square of 4 x 4: its two rows are in the middle, and 2 x 2 cells have 2 x 2 pixels each."""
    mask = np.array([[1, 1, 0, 2], [1, 0, 0, 0]], dtype=np.uint8)
    covered = CellGrid(Letterbox(2, 4), WHOLE_SQUARE, 2, 2).coverage(mask, 2)
    np.testing.assert_allclose(covered[0, 0], [0.5, 0.5, 0])  # Two pixels of the frame and two of the black margin.
    np.testing.assert_allclose(covered[0, 1], [0.75, 0, 0.25])
    np.testing.assert_allclose(covered[1, 0], [0.75, 0.25, 0])


def test_coverage_keeps_the_area():
    """Check that cell areas sum to the pixels in the window, including fractions, for every grid."""
    mask = (np.random.default_rng(0).random((37, 53)) < 0.3).astype(np.uint8)
    box, window = Letterbox(37, 53), Window(0.1, 0.2, 0.8, 0.7)
    for rows, columns in ((3, 5), (56, 56)):
        covered = CellGrid(box, window, rows, columns).coverage(mask, 1)
        area = covered[..., 1].mean() * (0.8 * 53) * (0.7 * 53)
        inner = np.zeros(37)
        edges = 0.2 * 53 - box.top, 0.9 * 53 - box.top
        inner = np.clip(np.minimum(np.arange(1, 38), edges[1]) - np.maximum(np.arange(37), edges[0]), 0, 1)
        across = np.clip(np.minimum(np.arange(1, 54), 0.9 * 53) - np.maximum(np.arange(53), 0.1 * 53), 0, 1)
        assert area == pytest.approx(inner @ mask @ across, rel=1e-5)


def test_interpolation_is_torchs():
    """Compare with bilinear interpolation at pixel centres, as in `interpolate(align_corners=False)`."""
    import torch

    cells = np.random.default_rng(1).random((7, 7, 3)).astype(np.float32)
    pixels = CellGrid(Letterbox(64, 64), WHOLE_SQUARE, 7, 7).to_pixels(cells)
    theirs = torch.nn.functional.interpolate(torch.from_numpy(cells).permute(2, 0, 1)[None], (64, 64), mode="bilinear")
    np.testing.assert_allclose(pixels, theirs[0].permute(1, 2, 0).numpy(), atol=1e-6)


def test_points_survive_a_round_trip():
    grid = CellGrid(Letterbox(60, 100), Window(0.1, 0.05, 0.8, 0.9), 14, 21)
    points = np.array([[12.0, 3.5], [80.25, 59.0]])
    np.testing.assert_allclose(grid.from_cells(grid.to_cells(points)), points)
    # The upper left corners of the window and of the first cell coincide.
    np.testing.assert_allclose(grid.to_cells([[0.1 * 100 - 0.5, 0.05 * 100 - 20 - 0.5]]), [[-0.5, -0.5]])
