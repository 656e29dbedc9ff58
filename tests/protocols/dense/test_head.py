"""The sub-cell head against scikit-learn, finite differences and by hand."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from cardiobench.protocols.dense import head as module
from cardiobench.protocols.dense.head import (
    SubcellHead,
    _Objective,
    cells_per_token,
    fit_path,
    join_cells,
    prior_head,
    split_cells,
)
from cardiobench.protocols.dense.landmarks import fit_global, heatmaps, peaks

RNG = np.random.default_rng(0)


def test_cells_per_token():
    assert [cells_per_token(grid) for grid in ((7, 7), (14, 14), (16, 16), (12, 9))] == [8, 4, 4, 7]


def test_cells_are_sorted_by_token():
    """Cell (5, 2) of 6 x 6 lies in the token of row 2, column 1 of a 3 x 3 grid, second row and first column in it."""
    cells = np.arange(36.0).reshape(1, 6, 6, 1)
    apart = split_cells(cells, (3, 3))
    assert apart.shape == (1, 9, 4, 1)
    assert apart[0, 2 * 3 + 1, 2, 0] == cells[0, 5, 2, 0]
    np.testing.assert_array_equal(join_cells(apart, (3, 3)), cells)


def problem(n=40, grid=(2, 2), width=5, s=1, k=3):
    tokens = RNG.normal(size=(n, *grid, width)).astype(np.float16)
    truth = RNG.normal(size=(width, s * s * k))
    logits = tokens.astype(float).reshape(n, -1, width) @ truth + RNG.normal(size=(grid[0] * grid[1], s * s * k))
    labels = logits.reshape(n, -1, s * s, k).argmax(axis=-1)
    return tokens, np.eye(k, dtype=np.float32)[labels]


def test_against_scikit_learn():
    """One place, one cell: logistic regression without an intercept, on the same standardised tokens and offset."""
    tokens, targets = problem(n=200, grid=(1, 1), k=2)
    targets[:, :, :, 0], targets[:, :, :, 1] = 0.5, 0.5  # a prior without any preference
    start = prior_head(tokens, targets, (1, 1))
    labels = (tokens[:, 0, 0, 0] + 0.3 * RNG.normal(size=200) > 0).astype(int)
    hard = np.eye(2, dtype=np.float32)[labels].reshape(200, 1, 1, 2)
    ((_, fitted),) = fit_path(start, tokens, hard, [0.01])
    rows = (tokens[:, 0, 0].astype(float) - start.centre[0]) / start.scale
    # Two weight vectors w and -w under a penalty p on both are one vector 2 w under p / 2.
    theirs = LogisticRegression(C=1 / (200 * 0.005), fit_intercept=False, tol=1e-8, max_iter=1000).fit(rows, labels)
    np.testing.assert_allclose(fitted.predict(tokens)[:, 0, 0], theirs.predict_proba(rows), atol=2e-3)


@pytest.mark.parametrize("over", ["classes", "places"])
def test_gradient(over):
    tokens, targets = problem(n=6, s=2)
    if over == "places":
        targets = targets / targets.sum(axis=(1, 2), keepdims=True)
        targets[0, :, :, 1] = 0  # a point that one frame does not show
    objective = _Objective(prior_head(tokens, targets, (2, 2), over), tokens, targets)
    weights = RNG.normal(size=5 * 12) * 0.3
    _, gradient = objective(weights, 0.1)
    for number in (0, 17, 59):
        step = np.zeros_like(weights)
        step[number] = 1e-2
        numeric = (objective(weights + step, 0.1)[0] - objective(weights - step, 0.1)[0]) / 2e-2
        assert gradient[number] == pytest.approx(numeric, abs=2e-4)


def test_blocks_make_no_difference(monkeypatch):
    tokens, targets = problem(n=11, s=2)
    whole = [head.weights for _, head in fit_path(prior_head(tokens, targets, (2, 2)), tokens, targets, [0.1, 1.0])]
    monkeypatch.setattr(module, "BLOCK", 2 * 48)
    parts = [head.weights for _, head in fit_path(prior_head(tokens, targets, (2, 2)), tokens, targets, [0.1, 1.0])]
    np.testing.assert_allclose(parts, whole, atol=1e-4)


def test_without_information_the_head_is_the_mean():
    tokens, targets = problem(n=30)
    head = prior_head(tokens, targets, (2, 2))
    np.testing.assert_allclose(head.predict(tokens)[0].reshape(4, 3), targets.mean(axis=0)[:, 0].clip(1e-3), atol=1e-3)
    ((_, strict),) = fit_path(head, tokens, targets, [1e6])
    np.testing.assert_allclose(strict.predict(tokens), head.predict(tokens), atol=1e-4)


def test_points_from_maps():
    """A point in the middle of the picture, one between cells, one that is not seen."""
    points = np.array([[10.0, 6.0], [20.4, 15.7], [99.0, 3.0], [np.nan, np.nan]])
    maps = heatmaps(points, (24, 32))
    np.testing.assert_allclose(maps.sum(axis=(0, 1)), [1, 1, 0, 0], atol=1e-6)
    assert np.unravel_index(maps[..., 0].argmax(), (24, 32)) == (6, 10)
    np.testing.assert_allclose(peaks(maps[..., :2]), points[:2], atol=0.25)
    one = np.zeros((5, 5, 1))
    one[0, 4] = 1.0  # at the corner, where the window is cut
    np.testing.assert_array_equal(peaks(one), [[4, 0]])


def test_a_moving_point_is_followed():
    """One bright token moves with the point: the maps find it, which the mean token cannot say."""
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
    """y = 2 x exactly: shrunk by n / (n + penalty n)."""
    x = np.linspace(-1, 1, 21)[:, None]
    points = np.repeat(2 * x[:, None], 2, axis=2)
    ((_, fitted),) = fit_global(x, points, [0.25])
    np.testing.assert_allclose(fitted.predict(x), np.repeat(2 * x / 1.25, 2, axis=1), atol=1e-12)


def test_a_head_is_made_of_plain_arrays():
    head = SubcellHead(np.zeros((1, 1, 2), np.float32), np.zeros((1, 3), np.float32), np.ones(3, np.float32),
                       np.zeros((3, 2), np.float32), (1, 1))  # fmt: skip
    np.testing.assert_allclose(head.predict(np.zeros((2, 1, 1, 3), np.float16)), 0.5)
