"""Loss and predictions of a network trained on a task, the same for every network and device."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from scipy.special import expit, softmax
from sklearn.metrics import roc_auc_score
from torch.nn import functional

from cardiobench.data.spec import Task
from cardiobench.protocols.base import TaskData


class TrainingObjective:
    """Targets of a task, the loss of a network's outputs, and their conversion to predictions.

    Args:
        data: Recordings of the task.
        fit: Training rows; the targets of a regression are standardised by their labels.
        balanced: Whether rare classes have larger weights; ignored for multilabel tasks.
    """

    def __init__(self, data: TaskData, fit: np.ndarray, *, balanced: bool = False):
        self.task: Task = data.task
        self.labels, self.targets, self.center, self.scale = data.labels, data.labels, 0.0, 1.0
        if not self.task.classes:
            self.center, self.scale = float(data.labels[fit].mean()), float(data.labels[fit].std()) or 1.0
            self.targets = (data.labels - self.center) / self.scale
        self.weights = self._class_weights(fit) if balanced else None

    @property
    def outputs(self) -> int:
        """Number of outputs per recording."""
        return len(self.task.classes) or 1

    def loss(self, outputs: torch.Tensor, rows: np.ndarray) -> torch.Tensor:
        """Return the mean loss over rows, a scalar: squared error, cross-entropy, or binary cross-entropy of known labels."""
        targets = torch.as_tensor(self.targets[rows], device=outputs.device)
        if not self.task.classes:
            return functional.mse_loss(outputs[:, 0], targets.to(outputs.dtype))
        if self.task.rules.answer == "labels":
            known = ~targets.isnan()
            losses = functional.binary_cross_entropy_with_logits(
                outputs[known], targets[known].to(outputs.dtype), reduction="sum"
            )
            return losses / max(int(known.sum()), 1)
        losses = functional.cross_entropy(outputs, targets, reduction="none")
        return losses.mean() if self.weights is None else (losses * self.weights.to(outputs.device)[targets]).mean()

    def share(self, rows: np.ndarray, batch: np.ndarray) -> float:
        """Return the weight of the mean loss over some rows of a batch within the batch."""
        if self.task.rules.answer != "labels":
            return len(rows) / len(batch)
        known = ~np.isnan(self.targets)
        return float(known[rows].sum() / max(known[batch].sum(), 1))

    def answers(self, outputs: np.ndarray) -> np.ndarray:
        """Return numbers (n,) in the task's unit, or class probabilities (n, classes), of outputs (n, outputs)."""
        if not self.task.classes:
            return outputs[:, 0] * self.scale + self.center
        return expit(outputs) if self.task.rules.answer == "labels" else softmax(outputs, axis=1)

    def quality(self, answers: np.ndarray, rows: np.ndarray) -> float:
        """Return the quality of predictions, higher is better: macro AUROC, or minus the mean squared error in standard deviations.

        NaN if no class can be scored on these rows, or a prediction is not finite.
        """
        if not np.isfinite(answers).all():
            return float("nan")
        truth = self.labels[rows]
        if not self.task.classes:
            return -float(np.mean(((answers - truth) / self.scale) ** 2))
        if truth.ndim == 1:
            truth = np.where(np.arange(answers.shape[1]) == truth[:, None], 1.0, 0.0)
        columns = []
        for wanted, given in zip(truth.T, answers.T, strict=True):
            known = ~np.isnan(wanted)
            if len(np.unique(wanted[known])) == 2:
                columns.append(roc_auc_score(wanted[known], given[known]))
        return float(np.mean(columns)) if columns else float("nan")

    def _class_weights(self, fit: np.ndarray) -> torch.Tensor | None:
        """Return the weight of each class, inversely proportional to its share of the training rows; None for no weights.

        Takes the training rows, (n,), and returns float32 (classes,): 1 for classes without a row.
        """
        if not self.task.classes or self.task.rules.answer == "labels":
            return None
        counts = np.bincount(self.targets[fit], minlength=len(self.task.classes))
        present = np.count_nonzero(counts)
        weights = np.where(counts, len(fit) / (present * np.maximum(counts, 1)), 1.0)
        return torch.as_tensor(weights, dtype=torch.float32)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread, because the order of summation depends on the number of threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
