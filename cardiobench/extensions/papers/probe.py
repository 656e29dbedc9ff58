"""Reproduce the linear probe of arXiv:2510.00520 on stored embeddings.

The recipe of the released code is one linear layer, AdamW with learning rate 1e-4 and weight decay 1e-2, and batches of
64 without the incomplete last one. Training takes at most 1000 epochs, stops after 20 epochs without an improvement of
the validation loss by 1e-3, and keeps the best layer. There are no class weights and no standardisation; the decision
threshold is 0.5. Frame encoders use one frame per clip, as published; other models use all parts. Two details differ:
the published code encodes again in every epoch and computes in bfloat16; this implementation uses stored float32
vectors.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch.nn import functional

from cardiobench.core.errors import NotApplicable
from cardiobench.data.spec import Task
from cardiobench.embeddings.vectors import l2_normalize
from cardiobench.models.base import Encoder
from cardiobench.protocols.base import ProtocolOutput, TaskData
from cardiobench.protocols.linear.model import LinearModel
from cardiobench.protocols.probe import COMPONENT, VERSION, LinearProbe

__all__ = ["COMPONENT", "VERSION", "PaperProbe"]  # Use the versions and result keys of the protocol itself.

LEARNING_RATE, WEIGHT_DECAY = 1e-4, 1e-2
BATCH, EPOCHS, PATIENCE, MIN_DELTA = 64, 1000, 20, 1e-3
SEED = 42
UNSTOPPED = (
    f"the published recipe reached its {EPOCHS} epochs before its validation loss stopped falling by {MIN_DELTA:g} in "
    f"{PATIENCE} epochs: the layer has not converged"
)


@dataclass(frozen=True)
class PaperProbe(LinearProbe):
    """Linear probe with the published recipe."""

    profile: Literal["paper"] = "paper"  # type: ignore[assignment]

    def check(self, task: Task) -> None:
        """Reject tasks that the recipe does not cover."""
        super().check(task)
        check_has_recipe(task)

    def params_for(self, task: Task) -> dict[str, Any]:
        """Return the options of the recipe, omitting unused options of the default probe."""
        return {
            "profile": self.profile,
            "seed": self.seed,
            "learning_rate": LEARNING_RATE,
            "weight_decay": WEIGHT_DECAY,
            "batch_size": BATCH,
            "max_epochs": EPOCHS,
            "patience": PATIENCE,
            "min_delta": MIN_DELTA,
        }

    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> ProtocolOutput:
        """Predict test recordings with a probe trained on train and stopped early on validation."""
        self.check(data.task)
        test, n_parts = data.indices("test"), 1 if getattr(encoder, "frame_wise", False) else None
        model, details = train(data, n_parts, seed=self.seed)
        warnings = () if details["stopped"] else (UNSTOPPED,)
        values = model.predict(mean_of_unit_parts(data, test, n_parts))
        return ProtocolOutput(test, values, {**details, "refits": 0}, warnings=warnings)


def check_has_recipe(task: Task) -> None:
    """Reject multilabel tasks, which the papers do not cover."""
    if task.rules.answer == "labels":
        raise NotApplicable(f"{task.name} has recordings with several classes, for which the papers have no recipe")


def mean_of_unit_parts(data: TaskData, indices: np.ndarray, n_parts: int | None = None) -> np.ndarray:
    """Return the mean unit vector of the first `n_parts` parts of each row (None for all).

    The array is float64 (n, dim).
    """
    return np.array(
        [l2_normalize(data.embeddings.parts(row)[:n_parts].astype(np.float64)).mean(axis=0) for row in indices]
    )


def train(
    data: TaskData, n_parts: int | None = None, *, epochs: int = EPOCHS, seed: int = SEED
) -> tuple[LinearModel, dict[str, Any]]:
    """Train the linear layer; return the best layer by validation loss and a training summary.

    Raises:
        NotApplicable: There are no validation rows, or too few training rows for one batch.
    """
    fit, validation = data.indices("train"), data.indices("validation")
    if len(fit) < BATCH or not len(validation):
        raise NotApplicable(
            f"{data.task.name} has {len(fit)} training and {len(validation)} validation rows here; the published recipe "
            f"drops batches of fewer than {BATCH} and stops by validation. Leave --profile paper out"
        )
    x, y = _tensors(data, fit, n_parts)
    x_valid, y_valid = _tensors(data, validation, n_parts)
    outputs = len(data.task.classes) if _several_classes(data.task) else 1
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = torch.nn.Linear(x.shape[1], outputs)
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(layer.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    best, best_loss, reference, waited, epoch = None, np.inf, np.inf, 0, 0
    while epoch < epochs and waited < PATIENCE:
        epoch += 1
        order = torch.randperm(len(x), generator=generator)
        for batch in order[: len(x) - len(x) % BATCH].split(BATCH):
            optimiser.zero_grad()
            _loss(layer(x[batch]), y[batch], data.task).backward()
            optimiser.step()
        with torch.no_grad():
            loss = float(_loss(layer(x_valid), y_valid, data.task))
        if loss < best_loss:
            best_loss, best = loss, {name: value.clone() for name, value in layer.state_dict().items()}
        if loss < reference - MIN_DELTA:
            reference, waited = loss, 0
        else:
            waited += 1
    if best is None:
        raise NotApplicable(f"the published recipe never had a finite validation loss on {data.task.name}")
    model = LinearModel(best["weight"].T.double().numpy(), best["bias"].double().numpy(), len(data.task.classes))
    return model, {
        "recipe": "arXiv:2510.00520",
        "epochs": epoch,
        "stopped": waited >= PATIENCE,
        "validation_loss": best_loss,
        "fitted_on": len(fit),
        "parts": n_parts or "all",
    }


def _tensors(data: TaskData, indices: np.ndarray, n_parts: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    features = torch.from_numpy(mean_of_unit_parts(data, indices, n_parts).astype(np.float32))
    labels = torch.from_numpy(data.labels[indices])
    return features, labels if _several_classes(data.task) else labels.float()


def _loss(outputs: torch.Tensor, labels: torch.Tensor, task: Task) -> torch.Tensor:
    if _several_classes(task):
        return functional.cross_entropy(outputs, labels)
    if task.rules.two_classes:
        return functional.binary_cross_entropy_with_logits(outputs[:, 0], labels)
    return functional.mse_loss(outputs[:, 0], labels)


def _several_classes(task: Task) -> bool:
    return task.rules.link == "softmax" and not task.rules.two_classes
