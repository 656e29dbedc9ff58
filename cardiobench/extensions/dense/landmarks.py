"""Predict landmarks as heatmap peaks or by regression from the mean token."""

from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

SIGMA = 2.0  # Standard deviation of the target around a point, in cells.
WINDOW = 5  # Side of the window around the peak in which the point is averaged, in cells.


def heatmaps(points: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return heatmap targets: normal densities over the cells of a frame, each with sum one.

    Args:
        points: Points, (k, 2), as x and y in cells; NaN or outside the cells if the network cannot see the point.
        shape: Number of rows and columns of cells.

    Returns:
        Targets, float32 (rows, columns, k); zero for invisible points.
    """
    seen = ((points >= -0.5) & (points <= np.array(shape[::-1]) - 0.5)).all(axis=1)
    down, across = (
        np.exp(-0.5 * ((np.arange(count)[:, None] - np.where(seen, points[:, axis], 0.0)) / SIGMA) ** 2)
        for axis, count in ((1, shape[0]), (0, shape[1]))
    )
    maps = down[:, None] * across[None]
    return (maps / maps.sum(axis=(0, 1)) * seen).astype(np.float32)


def peaks(maps: np.ndarray) -> np.ndarray:
    """Return the mean position in a window around the peak of each map.

    Args:
        maps: Non-negative maps, (rows, columns, k).

    Returns:
        Points, float64 (k, 2), as x and y in cells.
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
    """Fit ridge regressions from mean tokens to all coordinates, starting with the largest penalty.

    Args:
        tokens: Mean tokens of the training frames, (n, d).
        points: Finite points as fractions of the square's side, (n, k, 2).
        penalties: Penalties per frame on the squared coefficients of standardised features.

    Yields:
        Penalty and fitted regression with outputs (m, 2 k).
    """
    flat = points.reshape(len(points), -1)
    for penalty in sorted(penalties, reverse=True):
        yield penalty, make_pipeline(StandardScaler(), Ridge(alpha=penalty * len(flat))).fit(tokens, flat)
