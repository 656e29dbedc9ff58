"""Map tokens to sub-cells by multinomial logistic regression around the mean of each position."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

CELLS = 56
"""Minimum number of rows or columns of cells; finer grids change the best reachable Dice by less than 0.01."""
SMALLEST = 1e-3  # Lower bound of the mean probability at each position.
BLOCK = 2**22  # Maximum number of float32 values in a block of frames.

Over = Literal["classes", "places"]
"""Axis over which probabilities sum to one: classes of each cell, or cells of a frame for each point."""


def cells_per_token(grid: tuple[int, int]) -> int:
    """Return the smallest s for which s x s sub-cells per token give at least `CELLS` rows and columns."""
    return -(-CELLS // min(grid))


@dataclass(frozen=True, eq=False)
class SubcellHead:
    """Linear head with logits `prior + (token - centre) / scale @ weights`.

    Attributes:
        prior: Logarithm of the mean training target, float32 (L, s * s, K) with L = rows * columns tokens.
        centre: Mean token at each position, float32 (L, d).
        scale: Standard deviation of each dimension around the centre, float32 (d,).
        weights: Weights, float32 (d, s * s * K).
        grid: Number of rows and columns of tokens.
        over: Axis of the softmax.
    """

    prior: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    weights: np.ndarray
    grid: tuple[int, int]
    over: Over = "classes"

    def predict(self, tokens: np.ndarray) -> np.ndarray:
        """Return the probabilities of frames.

        Args:
            tokens: Tokens, (n, rows, columns, d).

        Returns:
            Probabilities, float32 (n, s * rows, s * columns, K).
        """
        chunks = [self.probabilities(block).numpy() for _, block in blocks(tokens, self.prior)]
        return join_cells(np.concatenate(chunks), self.grid)

    def probabilities(self, block: torch.Tensor) -> torch.Tensor:
        """Return probabilities (b, L, s * s, K) for a block of tokens (b, L, d)."""
        return torch.exp(log_softmax(self.logits(block), self.over))

    def logits(self, block: torch.Tensor) -> torch.Tensor:
        """Return logits. The shape is (b, L, s * s, K)."""
        slope = torch.from_numpy(self.weights / self.scale[:, None])
        offset = torch.from_numpy(self.prior).flatten(1) - torch.from_numpy(self.centre) @ slope
        return (block @ slope + offset).unflatten(2, self.prior.shape[1:])


def split_cells(cells: np.ndarray, grid: tuple[int, int]) -> np.ndarray:
    """Group cells (n, s * rows, s * columns, K) by token. Returns an array (n, rows * columns, s * s, K)."""
    n, height, _, k = cells.shape
    (rows, columns), s = grid, height // grid[0]
    apart = cells.reshape(n, rows, s, columns, s, k).transpose(0, 1, 3, 2, 4, 5)
    return np.ascontiguousarray(apart).reshape(n, rows * columns, s * s, k)


def join_cells(cells: np.ndarray, grid: tuple[int, int]) -> np.ndarray:
    """Invert `split_cells`: cells (n, rows * columns, s * s, K) become (n, s * rows, s * columns, K)."""
    n, _, squared, k = cells.shape
    (rows, columns), s = grid, round(squared**0.5)
    return cells.reshape(n, rows, columns, s, s, k).transpose(0, 1, 3, 2, 4, 5).reshape(n, rows * s, columns * s, k)


def prior_head(tokens: np.ndarray, targets: np.ndarray, grid: tuple[int, int], over: Over = "classes") -> SubcellHead:
    """Return a head that predicts the mean training target for every frame.

    Args:
        tokens: Training tokens, (n, rows, columns, d), which determine centre and scale.
        targets: Training targets of the cells, (n, L, s * s, K).
        grid: Number of rows and columns of tokens.
        over: Axis of the softmax.
    """
    centre, scale = _mean_and_scale(tokens)
    mean = targets.mean(axis=0, dtype=np.float64)
    if over == "classes":
        prior = np.log(np.maximum(mean, SMALLEST))
    else:  # Use fractions of the frame's cells.
        prior = np.log(np.maximum(mean, SMALLEST / (mean.shape[0] * mean.shape[1])))
    weights = np.zeros((tokens.shape[-1], prior.shape[1] * prior.shape[2]), dtype=np.float32)
    return SubcellHead(prior.astype(np.float32), centre, scale, weights, grid, over)


def log_softmax(logits: torch.Tensor, over: Over) -> torch.Tensor:
    """Apply log-softmax to logits (n, L, s * s, K) over classes or over all cells of a frame."""
    if over == "classes":
        return torch.log_softmax(logits, dim=-1)
    return logits - torch.logsumexp(logits, dim=(1, 2), keepdim=True)


def blocks(tokens: np.ndarray, prior: np.ndarray) -> Iterator[tuple[int, torch.Tensor]]:
    """Yield the first index and the tokens, float32 (b, L, d), of each block of frames."""
    step = max(1, BLOCK // max(tokens[0].size, prior.size))
    for first in range(0, len(tokens), step):
        block = np.array(tokens[first : first + step])  # Copy the block, because stored data must not be modified.
        yield first, torch.from_numpy(block).flatten(1, 2).float()


def _mean_and_scale(tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean token per position (L, d) and standard deviation per dimension (d,), 1 if constant."""
    n, rows, columns, width = tokens.shape
    sums = np.zeros((rows * columns, width))
    squares = np.zeros(width)
    for _, block in blocks(tokens, tokens[0]):
        sums += block.sum(dim=0, dtype=torch.float64).numpy()
    centre = (sums / n).astype(np.float32)
    for _, block in blocks(tokens, tokens[0]):
        squares += (block - torch.from_numpy(centre)).square_().sum(dim=(0, 1), dtype=torch.float64).numpy()
    scale = np.sqrt(squares / (n * rows * columns))
    return centre, np.where(scale > 0, scale, 1.0).astype(np.float32)
