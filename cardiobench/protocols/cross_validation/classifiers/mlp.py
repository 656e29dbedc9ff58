"""A network with one hidden layer. All points of a grid are trained side by side, in one matrix product a step."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from cardiobench.protocols.cross_validation.folds import Split
from cardiobench.protocols.cross_validation.grids import FIXED, Point
from cardiobench.protocols.features import mean_and_std

SETTINGS = FIXED["mlp"]


@dataclass(frozen=True)
class Network:
    """Trained weights, in the units of the features: relu(features @ first + first_bias) @ last + last_bias.

    Attributes:
        first: (d, hidden), float64.
        first_bias: (hidden,).
        last: (hidden, outputs); one output for two classes, the logit of the second.
        last_bias: (outputs,).
    """

    first: np.ndarray
    first_bias: np.ndarray
    last: np.ndarray
    last_bias: np.ndarray

    def logits(self, features: np.ndarray) -> np.ndarray:
        """(n, outputs)."""
        return np.maximum(features @ self.first + self.first_bias, 0) @ self.last + self.last_bias

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """Class probabilities, (n, classes)."""
        logits = self.logits(features)
        if logits.shape[1] == 1:
            logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)


def answers(
    features: np.ndarray, labels: np.ndarray, splits: Sequence[Split], points: Sequence[Point], seed: int
) -> list[np.ndarray]:
    """Probabilities of the held-out lines of each split, (points, held, classes)."""
    classes = int(labels.max()) + 1
    return [
        np.stack(
            [net.probabilities(features[held]) for net in train(features[known], labels[known], points, classes, seed)]
        )
        for known, held in splits
    ]


def fit(features: np.ndarray, labels: np.ndarray, point: Point, seed: int) -> Network:
    """One trained network."""
    return train(features, labels, [point], int(labels.max()) + 1, seed)[0]


def train(features: np.ndarray, labels: np.ndarray, points: Sequence[Point], classes: int, seed: int) -> list[Network]:
    """A network for each point, by Adam, until its training loss has not fallen for some epochs.

    The rules are those of scikit-learn's MLPClassifier (Glorot's uniform start, squared weights added to the loss, batches
    of at most 200, at most 200 epochs, stop after 10 without progress), in float32. Where there are more features than
    lines, the network sees the lines' coordinates in the space that they span, which holds all that can be learned of them.
    """
    mean, deviation = mean_and_std(features)
    standard = (features - mean) / deviation
    basis = None
    if standard.shape[1] > standard.shape[0]:
        _, singular, axes = np.linalg.svd(standard, full_matrices=False)
        basis = axes[singular > 1e-6 * singular[0]].T
        standard = standard @ basis
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small matrices: threads that wait for each other cost more than they do
    try:
        first, first_bias, last, last_bias = _train(standard, labels, points, classes, seed)
    finally:
        torch.set_num_threads(threads)
    if basis is not None:
        first = basis @ first
    first = first / deviation[:, None]
    return [
        Network(one, bias - mean @ one, weights, offset)
        for one, bias, weights, offset in zip(first, first_bias, last, last_bias, strict=True)
    ]


def _train(features: np.ndarray, labels: np.ndarray, points: Sequence[Point], classes: int, seed: int):
    """Weights of the points' networks: (P, d, hidden), (P, hidden), (P, hidden, outputs), (P, outputs), float64."""
    n, width = features.shape
    hidden, outputs, count = SETTINGS["hidden"], 1 if classes == 2 else classes, len(points)
    rng = np.random.default_rng(seed)
    data = torch.from_numpy(features.astype(np.float32))
    target = torch.from_numpy((labels[:, None] == np.arange(classes))[:, -outputs:].astype(np.float32))

    def start(*shape: int, fan: int, spread: float) -> torch.Tensor:
        limit = np.sqrt(spread / fan)
        # One draw for all points: they differ by what the grid says, and by nothing else.
        one = rng.uniform(-limit, limit, shape).astype(np.float32)
        return torch.from_numpy(np.repeat(one[None], count, axis=0))

    # The first layers of all points lie side by side, so that one product with the data serves them all.
    w1 = start(width, hidden, fan=width + hidden, spread=6.0).permute(1, 0, 2).reshape(width, -1).contiguous()
    b1 = start(hidden, fan=width + hidden, spread=6.0).reshape(-1)
    # scikit-learn's bound of the output layer is the narrower one of the logistic function.
    w2 = start(hidden, outputs, fan=hidden + outputs, spread=2.0 if outputs == 1 else 6.0)
    b2 = start(outputs, fan=hidden + outputs, spread=2.0 if outputs == 1 else 6.0)
    state = [w1, b1, w2, b2]
    moments = [(torch.zeros_like(part), torch.zeros_like(part)) for part in state]
    alpha = torch.tensor([point["alpha"] for point in points], dtype=torch.float32)
    rate = torch.tensor([point["learning_rate"] for point in points], dtype=torch.float32)

    best, waited = torch.full((count,), torch.inf), torch.zeros(count, dtype=torch.int64)
    going, kept, batch = torch.arange(count), [part.clone() for part in state], min(SETTINGS["batch"], n)
    step = 0
    for _ in range(SETTINGS["epochs"]):
        order = torch.from_numpy(rng.permutation(n))
        total = torch.zeros(len(going))
        for begin in range(0, n, batch):
            lines = order[begin : begin + batch]
            step += 1
            total += _step(data[lines], target[lines], state, moments, alpha[going], rate[going], step) * len(lines)
        loss = total / n
        better = loss < best[going] - SETTINGS["tolerance"]
        waited[going] = torch.where(better, 0, waited[going] + 1)
        best[going] = torch.minimum(best[going], loss)
        over = waited[going] >= SETTINGS["patience"]
        if over.any():
            _keep(kept, state, going, over, hidden)
            going = going[~over]
            if not len(going):
                break
            state = _without(state, over, hidden)
            moments = [
                tuple(pair)
                for pair in zip(*(_without(list(m), over, hidden) for m in zip(*moments, strict=True)), strict=True)
            ]
    if len(going):
        _keep(kept, state, going, torch.ones(len(going), dtype=torch.bool), hidden)
    first = kept[0].reshape(width, count, hidden).permute(1, 0, 2)
    return tuple(part.numpy().astype(np.float64) for part in (first, kept[1].reshape(count, hidden), kept[2], kept[3]))


def _step(data, target, state, moments, alpha, rate, step: int) -> torch.Tensor:
    """One step of Adam for every network still in training; returns their losses before it."""
    w1, b1, w2, b2 = state
    count, hidden = w2.shape[:2]
    size = len(data)
    inner = torch.addmm(b1, data, w1).relu_()
    layers = inner.reshape(size, count, hidden).transpose(0, 1)
    logits = torch.baddbmm(b2[:, None], layers, w2)
    if logits.shape[2] == 1:
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, target.expand_as(logits), reduction="none")
        error = (logits.sigmoid() - target) / size
    else:
        loss = -(logits.log_softmax(dim=2) * target)
        error = (logits.softmax(dim=2) - target) / size
    squares = (w1 * w1).sum(dim=0).reshape(count, hidden).sum(dim=1) + (w2 * w2).sum(dim=(1, 2))
    losses = loss.sum(dim=(1, 2)) / size + 0.5 * alpha * squares / size
    back = torch.bmm(error, w2.transpose(1, 2)) * (layers > 0)
    flat = back.transpose(0, 1).reshape(size, -1)
    gradients = [
        torch.addcmul(data.T @ flat, w1, alpha.repeat_interleave(hidden) / size),
        flat.sum(dim=0),
        torch.addcmul(torch.bmm(layers.transpose(1, 2), error), w2, (alpha / size)[:, None, None]),
        error.sum(dim=1),
    ]
    speed = rate * (1 - 0.999**step) ** 0.5 / (1 - 0.9**step)
    rates = [speed.repeat_interleave(hidden), speed.repeat_interleave(hidden), speed[:, None, None], speed[:, None]]
    for part, (mean, square), gradient, pace in zip(state, moments, gradients, rates, strict=True):
        mean.lerp_(gradient, 0.1)
        square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        part -= pace * mean / square.sqrt().add_(1e-8)
    return losses


def _without(state: list[torch.Tensor], over: torch.Tensor, hidden: int) -> list[torch.Tensor]:
    """The weights (or moments) of the networks that are not over."""
    columns = (~over).repeat_interleave(hidden)
    return [state[0][:, columns].contiguous(), state[1][columns], state[2][~over], state[3][~over]]


def _keep(
    kept: list[torch.Tensor], state: list[torch.Tensor], going: torch.Tensor, over: torch.Tensor, hidden: int
) -> None:
    """Copy the weights of the networks that are over to their places."""
    chosen = going[over]
    from_columns = over.repeat_interleave(hidden)
    columns = (chosen[:, None] * hidden + torch.arange(hidden)).reshape(-1)
    kept[0][:, columns] = state[0][:, from_columns]
    kept[1][columns] = state[1][from_columns]
    kept[2][chosen], kept[3][chosen] = state[2][over], state[3][over]
