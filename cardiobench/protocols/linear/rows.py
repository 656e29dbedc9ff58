"""Training rows of a linear layer: standardised, read in blocks, in coordinates in which they are uncorrelated."""

from collections.abc import Iterator
from copy import copy

import numpy as np
from numpy.typing import DTypeLike

from cardiobench.protocols.features import mean_and_std, row_blocks

KEPT_NUMBERS = 2**23  # Maximum size of rows kept in memory, 64 MB; larger data are reread in every pass.
RANK_TOLERANCE = 1e-12  # Relative to the largest squared singular value; smaller ones are rounding errors.


class PrincipalRows:
    """Rows of a feature matrix, standardised and rotated to the eigenvectors of X' diag(weights) X.

    A penalty on the squared coefficients of the standardised features equals the same penalty in these coordinates. Few
    rows are rotated and kept in memory; many rows are reread in blocks in every pass, and the coefficients are rotated
    instead.

    Attributes:
        count: Number of rows, n.
        values: Eigenvalues of X' diag(weights) X, with X centred at its weighted mean, (r,), not negative; r is at most
            n and d.
    """

    def __init__(
        self,
        features: np.ndarray,
        indices: np.ndarray,
        weights: np.ndarray,
        scale: tuple[np.ndarray, np.ndarray] | None = None,
        dtype: DTypeLike = np.float64,
        *,
        exact_axes: bool = True,
    ):
        """Compute the axes of some rows.

        Args:
            features: Feature matrix (N, d), any float type; never copied as a whole.
            indices: Row indices, shape (n,).
            weights: Weights of the rows, shape (n,), positive.
            scale: Mean and deviation (d,) of each feature; by default those of these rows.
            dtype: Data type of the products in `outputs`.
            exact_axes: Whether axes are exact. False computes the axes of large data in float32, in half the time; they
                are orthonormal, but the rows are uncorrelated only up to rounding.
        """
        self.count, self.dtype = len(indices), np.dtype(dtype)
        self._features, self._indices = features, indices
        self._deviation = (mean_and_std(features, indices) if scale is None else scale)[1]
        # Another centre would only change the intercept, which is not penalised; this one makes it uncorrelated with
        # the rest.
        self._centre = sum(weights[rows] @ block for rows, block in row_blocks(features, indices)) / weights.sum()
        self.values, self._axes = self._principal_axes(weights, exact_axes or are_kept(self.count, features.shape[1]))
        self._rotated: list[tuple[slice, np.ndarray]] | None = None
        if are_kept(self.count, features.shape[1]):
            self._rotated = [(rows, (block @ self._axes).astype(self.dtype)) for rows, block in self._standardized()]

    def _principal_axes(self, weights: np.ndarray, exact: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return eigenvalues (r,) and eigenvectors (d, r) of X' diag(weights) X."""
        width = self._features.shape[1]
        if self.count < width:
            # Only the n x n products are needed; a decomposition of the n x d features takes ten times as long.
            every = np.concatenate([block for _, block in self._standardized()]) * np.sqrt(weights)[:, None]
            values, left = _eigh(every @ every.T)
            return values, every.T @ (left / np.sqrt(values))
        dtype = np.dtype(np.float64 if exact else np.float32)
        products, roots = np.zeros((width, width)), np.sqrt(weights).astype(dtype)
        for rows, block in self._standardized(dtype):
            block *= roots[rows, None]
            products += block.T @ block
        if exact:
            return _eigh(products)
        values, vectors = np.linalg.eigh(products)  # Rounding hides directions without variance, so all are kept.
        return np.maximum(values, 0), vectors

    def _standardized(self, dtype: DTypeLike = np.float64) -> Iterator[tuple[slice, np.ndarray]]:
        centre, deviation = self._centre.astype(dtype), self._deviation.astype(dtype)
        for rows, block in row_blocks(self._features, self._indices, dtype):
            block -= centre
            block /= deviation
            yield rows, block

    def in_precision(self, dtype: DTypeLike) -> "PrincipalRows":
        """Return the same rows and axes with products in another data type; rows kept in memory keep theirs."""
        rows = copy(self)
        rows.dtype = np.dtype(dtype)
        return rows

    def layer(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients (c, k) and intercepts (k,) of the columns of a block.

        Args:
            state: Coefficients of the coordinates, then the intercepts, (r + 1, k).
        """
        # Rows that are reread are not scaled; the scale is applied to the coefficients, which are fewer.
        coefficients = state[:-1] if self._rotated is not None else self.in_feature_units(state)[0]
        return coefficients.astype(self.dtype), state[-1].astype(self.dtype)

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the rows of each block, and the block, (m, c): their coordinates, or their centred features."""
        if self._rotated is not None:
            yield from self._rotated
            return
        centre = self._centre.astype(self.dtype)  # Otherwise float32 would suffer cancellation.
        for rows, block in row_blocks(self._features, self._indices, self.dtype):
            block -= centre
            yield rows, block

    def outputs(self, state: np.ndarray) -> np.ndarray:
        """Return the outputs of a linear layer for all rows. The shape is (n, k)."""
        coefficients, intercepts = self.layer(state)
        outputs = np.empty((self.count, state.shape[1]), self.dtype)
        for rows, block in self.blocks():
            outputs[rows] = block @ coefficients + intercepts
        return outputs

    def gradient(self, residuals: np.ndarray) -> np.ndarray:
        """Return X' residuals and, in the last row, their sums: (r + 1, k) of (n, k)."""
        sums = sum(sum_of_products(block, residuals[rows]) for rows, block in self.blocks())
        return self.to_gradient(np.asarray(sums))

    def to_gradient(self, sums: np.ndarray) -> np.ndarray:
        """Return the gradient of a state from sums over `blocks`.

        Args:
            sums: Sums of block' residual, with those of the residuals in the last row, shape (c + 1, k).
        """
        if self._rotated is not None:
            return sums
        return np.concatenate([self._axes.T @ (sums[:-1] / self._deviation[:, None]), sums[-1:]])

    def in_feature_units(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients (d, k) and intercepts (k,) for the original features."""
        coefficients = (self._axes @ state[:-1]) / self._deviation[:, None]
        return coefficients, state[-1] - self._centre @ coefficients


def are_kept(count: int, width: int) -> bool:
    """Return whether rows stay in memory instead of being reread in every pass."""
    return count * width <= KEPT_NUMBERS


def sum_of_products(block: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """Return block' residuals and, in the last row, the sums of the residuals: (d + 1, k) of (m, d) and (m, k)."""
    # In the data type of the block, because NumPy would copy the block for mixed types.
    products = residuals.T.astype(block.dtype, copy=False) @ block
    return np.concatenate([products.T, residuals.sum(axis=0, keepdims=True)])


def _eigh(products: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues (r,) above the tolerance, ascending, and their vectors (d, r), of a matrix (d, d)."""
    values, vectors = np.linalg.eigh(products)
    kept = values > RANK_TOLERANCE * values[-1]
    return values[kept], vectors[:, kept]
