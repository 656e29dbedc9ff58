"""Train a model's network on the recordings of a task."""

from functools import cached_property
from typing import Any

import numpy as np
import torch

from cardiobench.core.errors import CardioBenchError, NotApplicable
from cardiobench.extensions.finetune.adapt import adapt, groups_of
from cardiobench.extensions.finetune.inputs import PreparedRecordings
from cardiobench.extensions.finetune.network import FinetunedNetwork
from cardiobench.extensions.finetune.recipe import FinetuneRecipe, Mode
from cardiobench.extensions.finetune.saved import save
from cardiobench.extensions.finetune.structure import Structure
from cardiobench.metrics.load import load_metric
from cardiobench.models.base import Encoder
from cardiobench.models.device import name_of
from cardiobench.models.safe_folder import without_tokens
from cardiobench.protocols.base import TaskData
from cardiobench.protocols.features import mean_and_std
from cardiobench.protocols.training.loop import Schedule, train_network
from cardiobench.protocols.training.objective import TrainingObjective, one_thread

PARTS_AT_ONCE = 16
"""Number of parts encoded together for predictions."""


class FinetuneTraining:
    """Training of a model's network on a task.

    Args:
        data: Recordings of the task, including their parts.
        encoder: Original model, which does not change.
        fit: Training rows.
        held: Validation rows, which select the epoch and the learning rate.
        mode: Name of the trained part.
        recipe: Fine-tuning options.
        device: Training device.
    """

    def __init__(
        self,
        data: TaskData,
        encoder: Encoder,
        fit: np.ndarray,
        held: np.ndarray,
        mode: Mode,
        recipe: FinetuneRecipe,
        device: torch.device,
    ):
        if data.parts_of is None:
            raise NotApplicable(f"fine-tuning needs the recordings of {data.task.name}, which are not on this machine")
        self.data, self.encoder, self.fit, self.held = data, encoder, fit, held
        self.mode, self.recipe, self.device = mode, recipe, device
        self.objective = TrainingObjective(data, fit)
        self.inputs = PreparedRecordings(data.parts_of, data.rows["id"])
        self.scale = np.stack(mean_and_std(data.features, fit))

    @cached_property
    def structure(self) -> Structure:
        """Structure of the model's network."""
        with torch.random.fork_rng(devices=[]):
            network = FinetunedNetwork(self.encoder, self.scale, self.objective.outputs, self.device)
        return network.structure(self.inputs.parts(int(self.fit[0]))[:1].to(self.device), self.encoder.name)

    def network(self, seed: int) -> FinetunedNetwork:
        """Return the initial network; the head and adapters are initialised from the seed."""
        structure = self.structure  # Find the structure before seeding, because doing so draws random numbers.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = FinetunedNetwork(self.encoder, self.scale, self.objective.outputs, self.device)
            adapt(network, structure, self.mode, self.recipe, self.encoder.name)
        return network

    def train(self, seed: int, rate: float) -> tuple[FinetunedNetwork, dict[str, Any]]:
        """Train a network; return its best epoch and a training summary.

        Args:
            seed: Random seed of head, order, parts and dropout.
            rate: Learning rate of the head.

        Raises:
            NotApplicable: No gradient reaches the network, or no epoch has finite quality.
            CardioBenchError: The device has too little memory.
        """
        try:
            with without_tokens():
                return self._train(seed, rate)
        except torch.OutOfMemoryError:
            at_once = min(self.recipe.micro_batch, self.recipe.batch_size)
            raise CardioBenchError(
                f"{name_of(self.device)} has too little memory to train {self.encoder.name} on {at_once} recordings of "
                f"{self.recipe.parts} parts at once. Try --option finetune.micro_batch={max(at_once // 2, 1)}, which changes no batch, or "
                "finetune.modes='[\"lora\"]', which keeps fewer gradients."
            ) from None

    def _train(self, seed: int, rate: float) -> tuple[FinetunedNetwork, dict[str, Any]]:
        recipe, work = self.recipe, self.data.work
        network = self.network(seed)
        groups = groups_of(network, self.structure, recipe, rate)
        schedule = Schedule(recipe.epochs, recipe.batch_size, recipe.micro_batch, seed)
        name = f"{self.device.type}-{seed}-{rate}"
        checkpoint = work / f"{name}.pt" if work else None
        done = train_network(
            network, groups, self.objective, self.fit, self.held, self.crops, self.predict, schedule, checkpoint
        )
        details = {
            "epoch": done.epoch,
            "validation_quality": done.quality,
            "trained_parameters": sum(one.numel() for one in network.parameters() if one.requires_grad),
            "cka": self.cka(network),
            "trained_on": name_of(self.device),
        }
        if work:
            path = work / f"{name}.safetensors"
            save(network, path, self.facts(network))
            details["weights"] = "/".join(path.parts[-3:])
        return network, details

    def facts(self, network: FinetunedNetwork) -> dict[str, Any]:
        """Return the metadata of the trained weights."""
        return {
            "model": self.encoder.name,
            "revision": self.encoder.revision,
            "task": self.data.task.name,
            "classes": list(self.data.task.classes),
            "center": self.objective.center,
            "scale": self.objective.scale,
            "rank": self.recipe.rank,
            "targets": list(network.adapted),
        }

    def crops(self, rows: np.ndarray, generator: np.random.Generator | None) -> torch.Tensor:
        """Sample parts of each recording, (rows, parts, ...)."""
        drawn = self.inputs.drawn(rows, self.recipe.parts, generator or np.random.default_rng(0))
        return drawn.to(self.device)

    @torch.no_grad()
    def embed(self, network: FinetunedNetwork, rows: np.ndarray) -> torch.Tensor:
        """Return pooled vectors from all parts of recordings. The shape is (rows, dim)."""
        found = []
        with one_thread():
            for row in rows:
                vectors = [
                    network.encode(one.to(self.device)) for one in self.inputs.parts(int(row)).split(PARTS_AT_ONCE)
                ]
                found.append(network.pool(torch.cat(vectors).flatten(0, -2)[None]))
        return torch.cat(found) if found else torch.empty(0, self.scale.shape[1], device=self.device)

    @torch.no_grad()
    def predict(self, network: torch.nn.Module, rows: np.ndarray) -> np.ndarray:
        """Predict the recordings of some rows (n,). Returns (n,), or (n, classes)."""
        assert isinstance(network, FinetunedNetwork)
        vectors = self.embed(network, rows)
        with one_thread():
            return self.objective.answers(network.answer(vectors).double().cpu().numpy())

    def cka(self, network: FinetunedNetwork) -> float:
        """Return linear CKA of validation vectors before and after training."""
        after = self.embed(network, self.held).double().cpu().numpy()
        return load_metric("linear_cka").compute(self.data.features[self.held], after)["linear_cka"]
