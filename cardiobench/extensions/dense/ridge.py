"""Fit ridge regression from tokens to cells in constant memory, from running sums."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from cardiobench.extensions.dense.head import SubcellHead


class LinearCells(SubcellHead):
    """Sub-cell head without softmax; `prior` is the mean target, and predictions may leave [0, 1]."""

    def probabilities(self, block: torch.Tensor) -> torch.Tensor:
        """Return non-negative predictions for a block of frames. The shape is (b, L, s * s, K)."""
        return self.logits(block).clamp_(min=1e-12)  # A peak is a weighted mean, so the weights must not all be 0.


@dataclass
class RidgeSums:
    """Float64 sums over frames of tokens x and targets y at positions l.

    Attributes:
        grid: Number of rows and columns of tokens.
        frames: Number of frames.
        x: Sum of tokens at each position, (L, d).
        y: Sum of targets at each position, (L, s * s, K).
        xx: Sum of token products, (d, d).
        xy: Sum of token-target products, (d, s * s * K).
    """

    grid: tuple[int, int]
    frames: int = 0
    x: np.ndarray = field(default_factory=lambda: np.zeros(()))
    y: np.ndarray = field(default_factory=lambda: np.zeros(()))
    xx: np.ndarray = field(default_factory=lambda: np.zeros(()))
    xy: np.ndarray = field(default_factory=lambda: np.zeros(()))

    def update(self, tokens: np.ndarray, targets: np.ndarray) -> None:
        """Add a frame.

        Args:
            tokens: Tokens, (rows, columns, d).
            targets: Targets of the cells, (L, s * s, K).
        """
        x = tokens.reshape(-1, tokens.shape[-1]).astype(np.float64)
        y = targets.reshape(len(x), -1)
        self.frames += 1
        self.x, self.y = self.x + x, self.y + targets
        self.xx, self.xy = self.xx + x.T @ x, self.xy + x.T @ y

    def fit(self, penalties: Sequence[float]) -> Iterator[tuple[float, LinearCells]]:
        """Solve for each penalty, largest first, with tokens centred per position and scaled per dimension.

        The loss is half the mean squared error per token plus half the penalty times the squared weights.

        Yields:
            Penalty and fitted head.
        """
        count = self.frames * len(self.x)
        centre, prior = self.x / self.frames, self.y / self.frames
        flat = prior.reshape(len(prior), -1)
        covariance = (self.xx - self.frames * centre.T @ centre) / count
        product = (self.xy - self.frames * centre.T @ flat) / count
        scale = np.sqrt(np.diag(covariance).clip(0))
        scale[scale == 0] = 1.0
        values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
        turned = vectors.T @ (product / scale[:, None])
        for penalty in sorted(penalties, reverse=True):
            weights = vectors @ (turned / (values.clip(0) + penalty)[:, None])
            yield (
                penalty,
                LinearCells(
                    prior.astype(np.float32),
                    centre.astype(np.float32),
                    scale.astype(np.float32),
                    weights.astype(np.float32),
                    self.grid,
                ),
            )
