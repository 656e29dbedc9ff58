"""Train a network from scratch on the training patients of a task."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig, NotApplicable
from cardiobench.core.setting import Device, Positive, Seed
from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.extensions.scratch.recipes import PREFIX, RECIPES, card_of, recipe_of
from cardiobench.models.base import Encoder
from cardiobench.protocols.base import ProtocolOutput, TaskData
from cardiobench.protocols.ensemble import EnsembleProtocol
from cardiobench.protocols.learnable import check_learnable
from cardiobench.protocols.options import Repeats
from cardiobench.protocols.training.ensemble import Answers, mean_of_trainings
from cardiobench.protocols.training.split import fit_and_held
from cardiobench.results.cost import Cost

if TYPE_CHECKING:
    from cardiobench.extensions.scratch.training import ScratchTraining

COMPONENT = "protocol scratch"
VERSION = 3
DEFAULT = {"ecg": "s4", "echo": "r2plus1d"}
LEARNER = "a network trained from scratch"


@dataclass(frozen=True)
class Scratch(EnsembleProtocol):
    """Train a network with a fixed recipe from scratch on the training patients of a task.

    No model is required; the run adds `cardiobench/scratch-<network>`. Validation patients select the epoch by macro
    AUROC (regression: squared error). Without a validation split, a fifth of the training patients are held out. Test
    patients are never used for selection. Predictions are averaged over `seeds` runs, which can be distributed over
    worker processes. Each run uses one process and, on a CPU, one thread, so results do not depend on the number of
    workers. A checkpoint is stored after every epoch in the cache folder.

    Memory: one batch of recordings. Time: seeds x epochs x recordings x window.

    Attributes:
        network: Network name. For ECG: "s4" (2.15 M parameters, 2.5 s at 100 Hz), "net1d" (30.7 M, 2.5 s at 500 Hz) or
            "small" (0.3 M, 2.5 s at 100 Hz). For echo: "r2plus1d" (16 frames). "auto" selects s4 or r2plus1d.
        epochs: Number of epochs; "auto" for the default of the recipe, 100 (ECG) or 50 (echo).
        seeds: Number of runs, each with its own initial weights, order and crops.
        seed: First random seed.
        device: Training device; by default the device of the run (`--device`).
    """

    network: Literal["auto", "s4", "net1d", "small", "r2plus1d"] = "auto"
    epochs: Literal["auto"] | Positive = "auto"
    seeds: Repeats = 3
    seed: Seed = 0
    device: Device = "auto"

    name = "scratch"
    condition = "from scratch"
    learns = True
    keeps_training = True
    reference = "training from scratch on these patients"
    published_as = "supervised"

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return options that depend on the run settings."""
        return {"seed": config.seed, "device": config.device}

    def own_models(self, tasks: Sequence[Task], models: Sequence[str]) -> tuple[str, ...]:
        """Return the network's card for the modality of each task, unless the run names a model of this protocol.

        Raises:
            BadConfig: No task has the modality of the requested network.
        """
        modalities = {catalog.spec(task.dataset).modality for task in tasks}
        self._check_network(tasks, modalities)
        if any(model.startswith(PREFIX) for model in models):
            return ()
        networks = DEFAULT.values() if self.network == "auto" else (self.network,)
        return tuple(card_of(one) for one in networks if RECIPES[one].modality in modalities)

    @property
    def members(self) -> int:
        """Number of training runs."""
        return self.seeds

    def check_encoder(self, encoder: Encoder, task: Task) -> None:
        """Reject all models except those of this protocol."""
        if getattr(encoder, "trained_by", "") != self.name:
            raise NotApplicable(f"{self.name} trains its own networks, and {encoder.name} is already trained")

    def prepare(self, data: TaskData, encoder: Encoder, variant: str = "") -> "ScratchTraining":
        """Return data shared by all training runs: training rows, validation rows and recipe.

        Raises:
            NotApplicable: There is no training data.
        """
        self.check(data.task)
        self.check_encoder(encoder, data.task)
        check_learnable(data, LEARNER)
        from cardiobench.extensions.scratch.training import ScratchTraining
        from cardiobench.models.device import choose_device

        recipe = recipe_of(encoder.name)
        device = choose_device(self.device, f"{self.name}.device")
        epochs = recipe.epochs if self.epochs == "auto" else self.epochs
        return ScratchTraining(data, *self._split(data), recipe, epochs, device)

    def train(self, prepared: "ScratchTraining", member: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        """Return test and validation predictions of one seed, (n,) or (n, classes), with a summary of the training.

        Raises:
            NotApplicable: No epoch has finite validation quality.
        """
        network, details = prepared.train(self.seed + member)
        test, validation = (prepared.data.indices(split) for split in ("test", "validation"))
        held_out = prepared.predict(network, validation) if len(validation) else np.empty(0)
        return prepared.predict(network, test), held_out, details

    def combine(self, data: TaskData, answers: Sequence[Answers]) -> ProtocolOutput:
        """Return the mean prediction; individual runs are stored as repeats."""
        fit, held = self._split(data)
        details = {
            "fitted_on": len(fit),
            "patients_fitted_on": len(np.unique(data.patients[fit])),
            "epoch_chosen_by": len(held),
        }
        output, summary = mean_of_trainings(data, answers, details, self.seed), answers[0][2]
        stored = data.embeddings.cost
        return replace(output, cost=Cost(stored.width, stored.bytes, "fp32", summary["parameters"], summary["flops"]))

    def _check_network(self, tasks: Sequence[Task], modalities: Collection[str]) -> None:
        if not tasks or self.network == "auto" or RECIPES[self.network].modality in modalities:
            return
        fitting = [name for name, recipe in RECIPES.items() if recipe.modality in modalities]
        raise BadConfig(
            f"{self.name}.network={self.network} is a network of {RECIPES[self.network].modality} recordings, and "
            f"{tasks[0].name} is a task of {catalog.spec(tasks[0].dataset).modality} recordings. "
            f"Choose {self.name}.network among auto, {', '.join(fitting)}, or other tasks."
        )

    def _split(self, data: TaskData) -> tuple[np.ndarray, np.ndarray]:
        return fit_and_held(data, self.seed, LEARNER)
