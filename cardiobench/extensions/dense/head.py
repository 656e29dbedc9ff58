"""Sub-cell head: multinomial logistic regression from each token to the cells that it covers, around the mean of the places."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

CELLS = 56
"""Rows or columns of cells at least; finer cells change the best reachable Dice by less than 0.01."""
SMALLEST = 1e-3  # Bounds to which the mean probability of the places is clamped.
BLOCK = 2**22  # Float32 numbers that a block of frames may take at once.

Over = Literal["classes", "places"]
"""The axis on which probabilities sum to one: the classes of a cell, or the cells of a frame for each point."""


def cells_per_token(grid: tuple[int, int]) -> int:
    """Return s: each token predicts s x s cells, so that there are at least `CELLS` rows and columns."""
    return -(-CELLS // min(grid))


@dataclass(frozen=True, eq=False)
class SubcellHead:
    """Logits of all cells of a frame: `prior + (token - centre) / scale @ weights`.

    Attributes:
        prior: Logarithm of the mean target of the training frames, float32 (L, s * s, K) for L = rows * columns tokens.
        centre: Mean token of each place, float32 (L, d).
        scale: Standard deviation of each dimension around it, float32 (d,).
        weights: Float32 (d, s * s * K).
        grid: Rows and columns of tokens.
        over: Axis of the softmax.
    """

    prior: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    weights: np.ndarray
    grid: tuple[int, int]
    over: Over = "classes"

    def predict(self, tokens: np.ndarray) -> np.ndarray:
        """Return probabilities of frames.

        Args:
            tokens: (n, rows, columns, d).

        Returns:
            float32 (n, s * rows, s * columns, K).
        """
        chunks = [self.probabilities(block).numpy() for _, block in blocks(tokens, self.prior)]
        return join_cells(np.concatenate(chunks), self.grid)

    def probabilities(self, block: torch.Tensor) -> torch.Tensor:
        """Return the probabilities of a block of frames, (b, L, s * s, K), from their tokens (b, L, d)."""
        return torch.exp(log_softmax(self.logits(block), self.over))

    def logits(self, block: torch.Tensor) -> torch.Tensor:
        """Return the logits of the probabilities, shape (b, L, s * s, K)."""
        slope = torch.from_numpy(self.weights / self.scale[:, None])
        offset = torch.from_numpy(self.prior).flatten(1) - torch.from_numpy(self.centre) @ slope
        return (block @ slope + offset).unflatten(2, self.prior.shape[1:])


def split_cells(cells: np.ndarray, grid: tuple[int, int]) -> np.ndarray:
    """Sort cells (n, s * rows, s * columns, K) by the token that they lie in, (n, rows * columns, s * s, K)."""
    n, height, _, k = cells.shape
    (rows, columns), s = grid, height // grid[0]
    apart = cells.reshape(n, rows, s, columns, s, k).transpose(0, 1, 3, 2, 4, 5)
    return np.ascontiguousarray(apart).reshape(n, rows * columns, s * s, k)


def join_cells(cells: np.ndarray, grid: tuple[int, int]) -> np.ndarray:
    """Undo `split_cells`."""
    n, _, squared, k = cells.shape
    (rows, columns), s = grid, round(squared**0.5)
    return cells.reshape(n, rows, columns, s, s, k).transpose(0, 1, 3, 2, 4, 5).reshape(n, rows * s, columns * s, k)


def prior_head(tokens: np.ndarray, targets: np.ndarray, grid: tuple[int, int], over: Over = "classes") -> SubcellHead:
    """Return the head that answers every frame with the mean of the training targets.

    Args:
        tokens: Tokens of the training frames, shape (n, rows, columns, d), from which centre and scale are computed.
        targets: Targets of their cells, shape (n, L, s * s, K).
        grid: Rows and columns of tokens.
        over: Axis of the softmax.
    """
    centre, scale = _mean_and_scale(tokens)
    mean = targets.mean(axis=0, dtype=np.float64)
    if over == "classes":
        prior = np.log(np.maximum(mean, SMALLEST))
    else:  # Fractions of the frame's cells.
        prior = np.log(np.maximum(mean, SMALLEST / (mean.shape[0] * mean.shape[1])))
    weights = np.zeros((tokens.shape[-1], prior.shape[1] * prior.shape[2]), dtype=np.float32)
    return SubcellHead(prior.astype(np.float32), centre, scale, weights, grid, over)


def log_softmax(logits: torch.Tensor, over: Over) -> torch.Tensor:
    """Normalise logits (n, L, s * s, K) over their classes, or over all cells of a frame."""
    if over == "classes":
        return torch.log_softmax(logits, dim=-1)
    return logits - torch.logsumexp(logits, dim=(1, 2), keepdim=True)


def blocks(tokens: np.ndarray, prior: np.ndarray) -> Iterator[tuple[int, torch.Tensor]]:
    """Yield the number of the first frame and the tokens (b, L, d), float32, of a few frames at a time."""
    step = max(1, BLOCK // max(tokens[0].size, prior.size))
    for first in range(0, len(tokens), step):
        block = np.array(tokens[first : first + step])  # A copy, since stored data must not be written to.
        yield first, torch.from_numpy(block).flatten(1, 2).float()


def _mean_and_scale(tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean token of each place (L, d), and the deviation of each dimension around it (d,); 1 where there is none."""
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
