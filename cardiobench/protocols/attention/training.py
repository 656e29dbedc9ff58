"""Training of attention over tokens: batches of stored tokens, AdamW, and the epoch with the lowest validation loss."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from cardiobench.core.errors import NotApplicable
from cardiobench.models.device import choose_device, name_of
from cardiobench.protocols.attention.recipe import AttentionRecipe
from cardiobench.protocols.base import TaskData
from cardiobench.protocols.features import mean_and_std
from cardiobench.protocols.training.objective import TrainingObjective, one_thread

STEPS = 10
"""Minimum number of steps per epoch; with one or two steps, as with few recordings and large batches, the weights would
hardly change."""


class AttentionPooling(torch.nn.Module):
    """Learned queries over tokens, with a linear layer on their output.

    The output of a head is the mean of the tokens, weighted by the softmax of their products with its query; the
    concatenated heads go to a linear layer. There are no key and value projections, because they would only multiply
    `query` and `head`. Queries start at random values, because from zero, where the output is the mean of the tokens,
    the gradient has no preferred direction.
    """

    def __init__(self, heads: int, outputs: int, mean: torch.Tensor, deviation: torch.Tensor):
        """Initialise the weights so that the scores of standardised tokens have a standard deviation of 1.

        Args:
            heads: Number of queries.
            outputs: Number of outputs per recording.
            mean: Mean of each token component, shape (dim,), for standardisation; its data type is that of the weights.
            deviation: Standard deviation of each token component, shape (dim,).
        """
        super().__init__()
        dim = len(mean)
        self.query = torch.nn.Parameter(torch.randn(heads, dim, dtype=mean.dtype))
        self.head = torch.nn.Linear(heads * dim, outputs, dtype=mean.dtype)
        self.mean: torch.Tensor
        self.deviation: torch.Tensor
        self.register_buffer("mean", mean)
        self.register_buffer("deviation", deviation)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Map tokens (N, T, dim), of which the first `lengths` (N,) are valid, to outputs (N, outputs)."""
        # Standardise the query and the output instead of the tokens, which saves a copy of the tokens: the mean only
        # adds a constant to all scores of a head, which the softmax cancels.
        scores = tokens @ (self.query / self.deviation).T / tokens.shape[2] ** 0.5
        absent = torch.arange(tokens.shape[1], device=tokens.device) >= lengths[:, None]
        weights = scores.masked_fill(absent[:, :, None], -torch.inf).softmax(dim=1)
        gathered = (weights.transpose(1, 2) @ tokens - self.mean) / self.deviation
        return self.head(gathered.flatten(1))


class AttentionTraining:
    """Tokens and labels of a task for training probes.

    At most one batch of tokens is in memory, padded to its longest recording; tokens are standardised by the mean and
    standard deviation of the training rows. The data type is float32, or float64 for float64 tokens, whose result then
    differs only in the last digits between processors.

    Args:
        data: Data of the task.
        fit: Indices of the training rows.
        held: Indices of the rows for early stopping.
        recipe: Training settings.

    Raises:
        BadConfig: The device is not available.
    """

    def __init__(self, data: TaskData, fit: np.ndarray, held: np.ndarray, recipe: AttentionRecipe):
        self.data, self.fit, self.held, self.recipe = data, fit, held, recipe
        self.device = choose_device(recipe.device, f"{recipe.name}.device")
        self.dtype = torch.float64 if data.embeddings.vectors.dtype == np.float64 else torch.float32
        rows = _token_rows(data.embeddings.offsets, fit)
        self.token_scale = [
            torch.from_numpy(numbers).to(self.dtype) for numbers in mean_and_std(data.embeddings.vectors, rows)
        ]
        self.objective = TrainingObjective(data, fit, balanced=recipe.class_weight is not None)

    def train(self, seed: int) -> tuple[AttentionPooling, dict[str, Any]]:
        """Train a probe.

        Args:
            seed: Seed of the initial weights and of the order of the recordings.

        Returns:
            The probe at the epoch with the lowest validation loss, and that epoch and loss with the device.

        Raises:
            NotApplicable: The validation loss was never finite.
        """
        with one_thread():
            return self._train(seed)

    def _train(self, seed: int) -> tuple[AttentionPooling, dict[str, Any]]:
        recipe, task = self.recipe, self.data.task
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            probe = AttentionPooling(recipe.heads, len(task.classes) or 1, *self.token_scale).to(self.device)
        generator = torch.Generator().manual_seed(seed)
        decays = ([probe.query], 0.0), (probe.head.parameters(), recipe.weight_decay)
        optimiser = torch.optim.AdamW(
            [{"params": weights, "weight_decay": decay} for weights, decay in decays], lr=recipe.learning_rate
        )
        step = min(recipe.batch_size, -(-len(self.fit) // STEPS))
        best: Mapping[str, torch.Tensor] | None = None
        best_loss, best_epoch, epoch = np.inf, 0, 0
        while epoch < recipe.epochs and epoch - best_epoch < recipe.patience:
            epoch += 1
            for batch in torch.randperm(len(self.fit), generator=generator).split(step):
                rows = self.fit[batch.numpy()]
                optimiser.zero_grad()
                self._loss(probe(*self._tokens(rows)), rows).backward()
                optimiser.step()
            loss = self._held_loss(probe)
            if loss < best_loss:
                best_loss, best_epoch = loss, epoch
                best = {name: value.clone() for name, value in probe.state_dict().items()}
        if best is None:
            raise NotApplicable(
                f"the validation loss of {recipe.name} was never finite on {task.name}. Give a smaller "
                f"learning rate than {recipe.learning_rate:g} (--option {recipe.name}.learning_rate=0.0001)"
            )
        probe.load_state_dict(best)
        return probe, {
            "epoch": best_epoch,
            "validation_loss": best_loss,
            "trained_on": name_of(self.device),
        }

    @torch.no_grad()
    def predict(self, probe: AttentionPooling, rows: np.ndarray) -> np.ndarray:
        """Return numbers (n,) in the task's unit, or class probabilities (n, classes), in float64."""
        batches = np.split(rows, range(self.recipe.batch_size, len(rows), self.recipe.batch_size))
        with one_thread():
            outputs = np.concatenate([probe(*self._tokens(batch)).double().cpu().numpy() for batch in batches])
        return self.objective.answers(outputs)

    @torch.no_grad()
    def _held_loss(self, probe: AttentionPooling) -> float:
        """Return the mean loss over the rows for early stopping."""
        total = 0.0
        for rows in np.split(self.held, range(self.recipe.batch_size, len(self.held), self.recipe.batch_size)):
            total += float(self._loss(probe(*self._tokens(rows)), rows)) * len(rows)
        return total / len(self.held)

    def _loss(self, outputs: torch.Tensor, rows: np.ndarray) -> torch.Tensor:
        """Return the mean loss, a scalar, of outputs (n, outputs) for the recordings `rows` (n,)."""
        return self.objective.loss(outputs, rows)

    def _tokens(self, rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the tokens (N, T, dim) of rows, padded with zeros, and the number of tokens of each (N,)."""
        parts = [torch.from_numpy(self.data.embeddings.parts(row).copy()) for row in rows]
        lengths = torch.tensor([len(part) for part in parts], device=self.device)
        tokens = torch.nn.utils.rnn.pad_sequence(parts, batch_first=True).to(self.device)
        return tokens.to(self.dtype), lengths


def _token_rows(offsets: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the positions of all tokens of some recordings.

    Takes the first token of each recording and the number of all tokens, (N + 1,), and the recordings, (n,).
    """
    return np.concatenate([np.arange(offsets[row], offsets[row + 1]) for row in rows])
