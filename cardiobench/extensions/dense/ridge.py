"""Ridge regression from tokens to cells in constant memory, from sums over the training frames."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from cardiobench.extensions.dense.head import SubcellHead


class LinearCells(SubcellHead):
    """The sub-cell head without softmax: `prior` is the mean target, and answers are not bound to lie between 0 and 1."""

    def probabilities(self, block: torch.Tensor) -> torch.Tensor:
        """Return the answers of a block of frames, never below 0, (b, L, s * s, K)."""
        return self.logits(block).clamp_(min=1e-12)  # A peak is a mean, whose weights must not all be 0.


@dataclass
class RidgeSums:
    """Sums over frames of tokens x at the places l and of their targets y, float64.

    Attributes:
        grid: Rows and columns of tokens.
        frames: Count.
        x: Sum of the tokens of each place, (L, d).
        y: Sum of the targets of each place, (L, s * s, K).
        xx: Sum of the products of tokens, (d, d).
        xy: Sum of the products of tokens and targets, (d, s * s * K).
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
            tokens: (rows, columns, d).
            targets: Targets of its cells, shape (L, s * s, K).
        """
        x = tokens.reshape(-1, tokens.shape[-1]).astype(np.float64)
        y = targets.reshape(len(x), -1)
        self.frames += 1
        self.x, self.y = self.x + x, self.y + targets
        self.xx, self.xy = self.xx + x.T @ x, self.xy + x.T @ y

    def fit(self, penalties: Sequence[float]) -> Iterator[tuple[float, LinearCells]]:
        """Solve for one penalty after the other, the largest first; it is on the squared weights of tokens centred per place and scaled per dimension.

        The loss is half the mean squared difference per token, plus half the penalty times the squared weights.

        Yields:
            Penalty and head.
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
