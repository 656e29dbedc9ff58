"""Landmarks: points as peaks on the cells of a frame, and as numbers from its mean token."""

from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

SIGMA = 2.0  # Standard deviation, in cells, of the target around a point.
WINDOW = 5  # Side, in cells, of the window around the most probable one whose mean is the point.


def heatmaps(points: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return the target of each point: a normal density over the cells of a frame, summing to one.

    Args:
        points: (k, 2), x and y in cells; NaN, or outside the cells, for a point that the network cannot see.
        shape: Rows and columns of cells.

    Returns:
        float32 (rows, columns, k); zero for a point that cannot be seen.
    """
    seen = ((points >= -0.5) & (points <= np.array(shape[::-1]) - 0.5)).all(axis=1)
    down, across = (
        np.exp(-0.5 * ((np.arange(count)[:, None] - np.where(seen, points[:, axis], 0.0)) / SIGMA) ** 2)
        for axis, count in ((1, shape[0]), (0, shape[1]))
    )
    maps = down[:, None] * across[None]
    return (maps / maps.sum(axis=(0, 1)) * seen).astype(np.float32)


def peaks(maps: np.ndarray) -> np.ndarray:
    """Return the mean place of the cells around each map's most probable one.

    Args:
        maps: (rows, columns, k), non-negative.

    Returns:
        float64 (k, 2), x and y in cells.
    """
    half = WINDOW // 2
    points = np.empty((maps.shape[2], 2))
    for number in range(maps.shape[2]):
        row, column = np.unravel_index(int(maps[..., number].argmax()), maps.shape[:2])
        top, left = max(row - half, 0), max(column - half, 0)
        near = maps[top : row + half + 1, left : column + half + 1, number].astype(np.float64)
        ys, xs = np.indices(near.shape)
        points[number] = left + (near * xs).sum() / near.sum(), top + (near * ys).sum() / near.sum()
    return points


def fit_global(tokens: np.ndarray, points: np.ndarray, penalties: Sequence[float]) -> Iterator[tuple[float, Pipeline]]:
    """Fit ridge regression from the mean token of a frame to all coordinates, the largest penalty first.

    Args:
        tokens: Mean tokens of the training frames, (n, d).
        points: Points as fractions of the square's side, shape (n, k, 2), finite.
        penalties: Penalties on the squared coefficients of standardised features, per frame.

    Yields:
        Penalty and fitted regression, which predicts (m, 2 k).
    """
    flat = points.reshape(len(points), -1)
    for penalty in sorted(penalties, reverse=True):
        yield penalty, make_pipeline(StandardScaler(), Ridge(alpha=penalty * len(flat))).fit(tokens, flat)
