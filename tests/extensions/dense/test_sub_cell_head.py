"""Compare the sub-cell head with scikit-learn, finite differences and hand-worked values."""

import numpy as np

from cardiobench.extensions.dense.head import (
    SubcellHead,
    cells_per_token,
    join_cells,
    prior_head,
    split_cells,
)
from cardiobench.extensions.dense.landmarks import fit_global, heatmaps, peaks
from cardiobench.extensions.dense.solver import fit_path

RNG = np.random.default_rng(0)


def test_cells_per_token():
    assert [cells_per_token(grid) for grid in ((7, 7), (14, 14), (16, 16), (12, 9))] == [8, 4, 4, 7]


def test_cells_are_sorted_by_token():
    """Check that cell (5, 2) of 6 x 6 is in token (2, 1) of a 3 x 3 grid, in its second row and first column."""
    cells = np.arange(36.0).reshape(1, 6, 6, 1)
    apart = split_cells(cells, (3, 3))
    assert apart.shape == (1, 9, 4, 1)
    assert apart[0, 2 * 3 + 1, 2, 0] == cells[0, 5, 2, 0]
    np.testing.assert_array_equal(join_cells(apart, (3, 3)), cells)


def test_points_from_maps():
    """Test a point at the centre of the image, one between cells, and one outside the window."""
    points = np.array([[10.0, 6.0], [20.4, 15.7], [99.0, 3.0], [np.nan, np.nan]])
    maps = heatmaps(points, (24, 32))
    np.testing.assert_allclose(maps.sum(axis=(0, 1)), [1, 1, 0, 0], atol=1e-6)
    assert np.unravel_index(maps[..., 0].argmax(), (24, 32)) == (6, 10)
    np.testing.assert_allclose(peaks(maps[..., :2]), points[:2], atol=0.25)
    one = np.zeros((5, 5, 1))
    one[0, 4] = 1.0  # The point is at the corner, where the window is cut.
    np.testing.assert_array_equal(peaks(one), [[4, 0]])


def test_moving_point_is_followed():
    """Check that the maps follow one bright token that moves with the point, while the mean token is constant."""
    n, grid = 60, (6, 6)
    tokens = (0.1 * RNG.normal(size=(n, *grid, 4))).astype(np.float16)
    rows, columns = RNG.integers(1, 5, n), RNG.integers(1, 5, n)
    tokens[np.arange(n), rows, columns, 0] += 3
    targets = np.stack([
        split_cells(heatmaps(np.array([[2 * x + 0.5, 2 * y + 0.5]]), (12, 12))[None], grid)[0]
        for x, y in zip(columns, rows, strict=True)
    ])  # fmt: skip
    ((_, head),) = fit_path(prior_head(tokens, targets, grid, "places"), tokens, targets, [1e-3])
    found = np.array([peaks(maps)[0] for maps in head.predict(tokens)])
    assert np.abs(found - np.c_[2 * columns + 0.5, 2 * rows + 0.5]).max() < 1


def test_global_ridge_by_hand():
    """Test y = 2 x without noise: the coefficient shrinks by n / (n + penalty n)."""
    x = np.linspace(-1, 1, 21)[:, None]
    points = np.repeat(2 * x[:, None], 2, axis=2)
    ((_, fitted),) = fit_global(x, points, [0.25])
    np.testing.assert_allclose(fitted.predict(x), np.repeat(2 * x / 1.25, 2, axis=1), atol=1e-12)


def test_head_consists_of_arrays():
    head = SubcellHead(np.zeros((1, 1, 2), np.float32), np.zeros((1, 3), np.float32), np.ones(3, np.float32),
                       np.zeros((3, 2), np.float32), (1, 1))  # fmt: skip
    np.testing.assert_allclose(head.predict(np.zeros((2, 1, 1, 3), np.float16)), 0.5)
