"""Feature matrices read in blocks of rows: scaling and unit vectors without a second copy of the matrix."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

BLOCK_NUMBERS = 2**18
"""Numbers per block: 2 MB in float64, which fit into the cache of a core."""


def row_blocks(
    features: np.ndarray, indices: np.ndarray | None = None, dtype: DTypeLike = np.float64
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield rows of a matrix in order, one block at a time.

    Args:
        features: Feature matrix (n, d), any float type; may be memory-mapped.
        indices: Row indices, shape (m,); None for all rows.
        dtype: Data type of the blocks.

    Yields:
        The block's slice of `indices`, and its rows as a copy in `dtype`.
    """
    count = len(features) if indices is None else len(indices)
    step = max(1, BLOCK_NUMBERS // max(features.shape[1], 1))
    for start in range(0, count, step):
        rows = slice(start, min(start + step, count))
        if indices is None:
            yield rows, features[rows].astype(dtype)
        else:
            yield rows, features.take(indices[rows], axis=0).astype(dtype, copy=False)


def mean_and_std(features: np.ndarray, indices: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each column, with float64 sums around the mean.

    Args:
        features: Feature matrix, shape (n, d).
        indices: Indices of the rows to use; None for all rows.

    Returns:
        Two arrays (d,). Constant columns have a standard deviation of 1, so that they are zero after centring.
    """
    count = len(features) if indices is None else len(indices)
    total, squares = np.zeros(features.shape[1]), np.zeros(features.shape[1])
    for _, block in row_blocks(features, indices):
        total += block.sum(axis=0)
    mean = total / count
    for _, block in row_blocks(features, indices):
        block -= mean
        squares += np.einsum("nd,nd->d", block, block)
    deviation = np.sqrt(squares / count)
    return mean, np.where(deviation > 1e-12 * np.maximum(np.abs(mean), 1.0), deviation, 1.0)


@dataclass(frozen=True)
class UnitRows:
    """Rows of a feature matrix as unit vectors, computed on demand; zero vectors stay zero.

    Attributes:
        features: Feature matrix, shape (n, d).
        indices: Row indices, shape (m,).
        scale: Mean and standard deviation (d,) for standardisation; None leaves the rows unchanged.
    """

    features: np.ndarray
    indices: np.ndarray
    scale: tuple[np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self.indices)

    def take(self, positions: slice | np.ndarray, dtype: DTypeLike = np.float64) -> np.ndarray:
        """Return the rows at some positions of `indices`, (..., d), computed in the given data type."""
        rows = self.features[self.indices[positions]].astype(dtype)
        if self.scale is not None:
            mean, deviation = self.scale
            rows -= mean.astype(dtype)
            rows /= deviation.astype(dtype)
        length = np.sqrt(np.einsum("...d,...d->...", rows, rows))[..., None]
        rows /= np.where(length > 0, length, 1)
        return rows
