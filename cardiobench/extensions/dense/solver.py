"""Fits the sub-cell head: multinomial logistic regression in coordinates in which its loss curves alike in all directions."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from scipy.optimize import minimize

from cardiobench.extensions.dense.head import SubcellHead, blocks, log_softmax

ITERATIONS = 200
GRADIENT = 1e-3  # Relative to its largest component at zero weights; below it Dice changes by less than 0.0002.


def fit_path(
    head: SubcellHead, tokens: np.ndarray, targets: np.ndarray, penalties: Sequence[float]
) -> Iterator[tuple[float, SubcellHead]]:
    """Fit a head for one penalty after the other, the largest first, each from the weights of the one before.

    The loss is the mean cross-entropy of the cells (or of the points), plus half the penalty times the squared weights.
    It is convex: the result depends on no seed.

    Args:
        head: Head of the mean, from `prior_head` on the same frames.
        tokens: Tokens of the training frames, shape (n, rows, columns, d), of any precision; they are not copied.
        targets: Soft labels of their cells, float32 (n, L, s * s, K).
        penalties: Penalties on the squared weights of standardised tokens, above 0.

    Yields:
        Penalty and head.
    """
    objective = Objective(head, tokens, targets)
    weights = head.weights.astype(np.float64)
    _, slope = objective(weights, 0.0)
    directions, curvature = _curvature(head, tokens, objective.count)
    for penalty in sorted(penalties, reverse=True):
        unit = 1 / np.sqrt(curvature + penalty)

        def scaled(flat: np.ndarray, penalty: float = penalty, unit: np.ndarray = unit) -> tuple[float, np.ndarray]:
            loss, gradient = objective(directions @ (unit * flat.reshape(unit.shape)), penalty)
            return loss, (unit * (directions.T @ gradient)).ravel()

        tolerance = GRADIENT * float(np.abs(unit * (directions.T @ slope)).max())
        options = {"maxiter": ITERATIONS, "gtol": tolerance, "ftol": 0.0, "maxcor": 10}
        start = (directions.T @ weights / unit).ravel()
        flat = minimize(scaled, start, jac=True, method="L-BFGS-B", options=options).x
        weights = directions @ (unit * flat.reshape(unit.shape))
        yield penalty, replace(head, weights=weights.astype(np.float32))


def _curvature(head: SubcellHead, tokens: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the principal directions of the tokens, and how the loss curves along them at zero weights.

    Tokens spread ten thousand times more in some directions than in others. Steps of the same length in all of them would
    need hundreds of evaluations where a penalty is small; divided by the root of the curvature, they need about fifteen.

    Args:
        head: Head of the mean.
        tokens: Tokens of the training frames.
        count: Divisor of the loss.

    Returns:
        Directions (d, d), one per column; the curvature of each weight along them, the tokens of all places taken
        together, (d, s * s * K).
    """
    centre, scale = torch.from_numpy(head.centre), torch.from_numpy(head.scale)
    products = torch.zeros((len(scale), len(scale)))
    for _, block in blocks(tokens, head.prior):
        standard = ((block - centre) / scale).flatten(0, 1)
        products += standard.T @ standard
    spread, directions = np.linalg.eigh(products.numpy().astype(np.float64) / count)
    mean = log_softmax(torch.from_numpy(head.prior)[None], head.over)[0].exp().flatten(1).numpy()
    return directions, np.outer(spread.clip(0), (mean * (1 - mean)).mean(axis=0))


class Objective:
    """The penalised loss and its gradient, a block of frames at a time.

    Attributes:
        count: Cells (or points) of all frames, whose mean the loss is.
    """

    def __init__(self, head: SubcellHead, tokens: np.ndarray, targets: np.ndarray):
        self.head, self.tokens, self.targets = head, tokens, targets
        per_frame = targets.shape[1] * targets.shape[2] if head.over == "classes" else targets.shape[3]
        self.count = len(targets) * per_frame

    def __call__(self, weights: np.ndarray, penalty: float) -> tuple[float, np.ndarray]:
        """Return loss and gradient at weights float64 (d, s * s * K)."""
        head = replace(self.head, weights=weights.astype(np.float32))
        loss, outer = 0.0, torch.zeros(head.weights.shape, dtype=torch.float32)
        inner = torch.zeros((head.centre.shape[0], head.weights.shape[1]))
        for first, block in blocks(self.tokens, head.prior):
            target = torch.from_numpy(self.targets[first : first + len(block)])
            log_p = log_softmax(head.logits(block), head.over)
            loss -= float((target * log_p).sum(dtype=torch.float64))
            # In a frame none of whose cells holds a point, that point says nothing.
            mass = target.sum(dim=(1, 2), keepdim=True) if head.over == "places" else 1.0
            difference = (log_p.exp_().mul_(mass).sub_(target)).flatten(2)
            outer += block.flatten(0, 1).T @ difference.flatten(0, 1)
            inner += difference.sum(dim=0)
        slope = (outer - torch.from_numpy(head.centre).T @ inner).numpy() / head.scale[:, None]
        gradient = slope.astype(np.float64) / self.count + penalty * weights
        return loss / self.count + penalty / 2 * float(np.square(weights).sum()), gradient
