"""Training loop: AdamW, batches of equal size, a checkpoint after every epoch, and the weights of the best epoch."""

import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cardiobench.core.errors import BadModel, NotApplicable
from cardiobench.core.io import write_atomic
from cardiobench.models.files import first_line
from cardiobench.models.weights import DAMAGED
from cardiobench.protocols.training.identity import (
    CHECKSUM,
    KEY,
    check_finite,
    check_identity,
    checksum_of,
    key_of,
)
from cardiobench.protocols.training.objective import TrainingObjective, one_thread

START: Mapping[str, Any] = {"epoch": 0, "best_epoch": 0, "best": None, "quality": -np.inf}
"""State of a training before its first epoch."""
Inputs = Callable[[np.ndarray, np.random.Generator | None], torch.Tensor]
"""f(rows, generator) -> inputs of the network: random crops for training, (rows, ...)."""
Predict = Callable[[torch.nn.Module, np.ndarray], np.ndarray]
"""f(network, rows) -> predictions for rows, as in `ProtocolOutput`."""


@dataclass(frozen=True)
class Schedule:
    """Settings of a training.

    Attributes:
        epochs: Number of epochs, without early stopping.
        batch_size: Recordings per step; the last incomplete batch is dropped, unless it is the only one.
        micro_batch: Recordings in memory at once; their gradients are accumulated over the batch.
        seed: Seed of order, crops and dropout.
        bf16: Whether to use bfloat16 on a GPU.
    """

    epochs: int
    batch_size: int
    micro_batch: int
    seed: int
    bf16: bool = True


@dataclass(frozen=True)
class Trained:
    """A finished training.

    Attributes:
        network: Network with the weights of its best epoch.
        epoch: That epoch, counted from 1.
        quality: Quality on the held-out rows at that epoch (`TrainingObjective.quality`).
    """

    network: torch.nn.Module
    epoch: int
    quality: float


def train_network(
    network: torch.nn.Module,
    groups: Sequence[dict[str, Any]],
    objective: TrainingObjective,
    fit: np.ndarray,
    held: np.ndarray,
    inputs: Inputs,
    predict: Predict,
    schedule: Schedule,
    checkpoint: Path | None = None,
) -> Trained:
    """Train a network and return it with the weights of the epoch that is best on held-out rows.

    All random draws of an epoch depend only on the seed and its number, so that a resumed training gives the same
    weights.

    Args:
        network: Network on its device, with initial weights.
        groups: Parameter groups for AdamW, each with `lr` and `weight_decay`.
        objective: Loss and predictions.
        fit: Training rows.
        held: Rows for choosing the epoch.
        inputs: Function that reads recordings.
        predict: Function that predicts rows with a network in evaluation mode.
        schedule: Training settings.
        checkpoint: File with the state after the last finished epoch; None for none.

    Raises:
        NotApplicable: No epoch had finite predictions for the held-out rows.
    """
    optimiser = torch.optim.AdamW(groups)
    device = next(network.parameters()).device
    trained = {name for name, parameter in network.named_parameters() if parameter.requires_grad}
    moving = trained | {name for name, _ in network.named_buffers()}
    state = dict(START)
    if checkpoint is not None and checkpoint.exists():
        state = _resume(network, optimiser, moving, checkpoint, schedule.epochs)
    with one_thread(), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        while state["epoch"] < schedule.epochs:
            epoch = state["epoch"] + 1
            _one_epoch(network, optimiser, objective, fit, inputs, schedule, epoch)
            with torch.no_grad():
                network.eval()
                quality = objective.quality(predict(network, held), held)
            quality = quality if np.isfinite(quality) else -np.inf
            if quality > state["quality"]:
                best = {name: value.clone() for name, value in network.state_dict().items() if name in moving}
                state |= {"best_epoch": epoch, "best": best, "quality": quality}
            state["epoch"] = epoch
            if checkpoint is not None:
                _save(network, optimiser, state, moving, checkpoint, done=epoch == schedule.epochs)
    if state["best"] is None:
        raise NotApplicable(
            f"training on {objective.task.name} never gave answers of finite quality for the {len(held)} held-out recordings; "
            "they may all be of one class, or the learning rate is too large"
        )
    network.load_state_dict(state["best"], strict=False)
    return Trained(network.eval(), state["best_epoch"], state["quality"])


def _one_epoch(
    network: torch.nn.Module,
    optimiser: torch.optim.Optimizer,
    objective: TrainingObjective,
    fit: np.ndarray,
    inputs: Inputs,
    schedule: Schedule,
    epoch: int,
) -> None:
    """Train on every whole batch of the rows `fit` (n,), in an order that depends on the seed and the epoch only."""
    generator = np.random.default_rng([schedule.seed, epoch])
    torch.manual_seed(int(generator.integers(2**62)))  # Dropout uses the global generators.
    order, size = generator.permutation(fit), min(schedule.batch_size, len(fit))
    network.train()
    for start in range(0, len(order) - size + 1, size):
        batch = order[start : start + size]
        optimiser.zero_grad()
        for first in range(0, size, schedule.micro_batch):
            rows = batch[first : first + schedule.micro_batch]
            signals = inputs(rows, generator)
            with _autocast(signals.device, schedule.bf16):
                outputs = network(signals)
            (objective.loss(outputs.float(), rows) * objective.share(rows, batch)).backward()
        optimiser.step()


def _autocast(device: torch.device, bf16: bool) -> AbstractContextManager[Any]:
    return torch.autocast("cuda", torch.bfloat16) if bf16 and device.type == "cuda" else nullcontext()


def _resume(
    network: torch.nn.Module, optimiser: torch.optim.Optimizer, moving: set[str], checkpoint: Path, epochs: int
) -> dict[str, Any]:
    """Load the weights and the optimiser's state after the last finished epoch, and return the state of the training.

    Raises:
        BadModel: The file is damaged, belongs to a different training run, has weights that are not finite, or requires
            running code.
    """
    try:
        state: dict[str, Any] = torch.load(
            checkpoint, map_location=next(network.parameters()).device, weights_only=True
        )
        check_identity(state, key_of(checkpoint))
        weights, moments = state.pop("network"), state.pop("optimiser", None)
        if state.keys() != START.keys():
            raise ValueError(f"it contains {', '.join(map(str, state))}; expected {', '.join(START)}")
        check_finite(state["best"] or {})
        done = state["epoch"] >= epochs
        for one in (state["best"], None if done else weights):
            if one is None:
                continue
            if one.keys() != moving & network.state_dict().keys():
                raise ValueError("its weights differ in name from those of this network")
            network.load_state_dict(one, strict=False)
        if not done:
            optimiser.load_state_dict(moments)
    except (pickle.UnpicklingError, *DAMAGED) as error:
        raise BadModel(
            f"{checkpoint} is not a checkpoint of this training run ({first_line(error)}). Delete it and run the same command "
            "again, which restarts the training."
        ) from error
    return state


def _save(
    network: torch.nn.Module,
    optimiser: torch.optim.Optimizer,
    state: Mapping[str, Any],
    moving: set[str],
    checkpoint: Path,
    *,
    done: bool,
) -> None:
    """Write the state for the next epoch; for a finished training only the weights."""
    weights = {name: value for name, value in network.state_dict().items() if name in moving}
    kept = {**state, "network": {}} if done else {**state, "network": weights, "optimiser": optimiser.state_dict()}
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    named = {**kept, KEY: key_of(checkpoint), CHECKSUM: checksum_of(kept)}
    torch.save(
        named, content := BytesIO()
    )  # If PyTorch wrote the file itself, a full disk would give an error without a reason.
    write_atomic(checkpoint, lambda path: path.write_bytes(content.getbuffer()))
