"""Scratch: a network that is trained from nothing on the training patients of a task."""

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
    """A network of a fixed recipe, trained from nothing on the training patients of a task.

    It needs no model: the run adds `cardiobench/scratch-<network>`, whose result it is. Validation patients choose the epoch
    by macro AUROC (of a regression by the squared error); without a validation split a fifth of the training patients do. Test
    patients take no part. The answer is the mean of `seeds` trainings, shared out to the processes of a run; each is computed
    whole by one process, on a CPU by one thread, so that its bits do not depend on how many there are. Each keeps a checkpoint
    after every epoch below the cache folder.

    Memory: one batch of recordings. Time: seeds x epochs x recordings x window.

    Attributes:
        network: Network of an ECG: "s4" (2.15 M parameters, 2.5 s at 100 Hz), "net1d" (30.7 M, 2.5 s at 500 Hz) or "small" (0.3 M,
            2.5 s at 100 Hz); of an echo "r2plus1d" (16 frames); "auto" is s4 and r2plus1d.
        epochs: Epochs; "auto" is those of the recipe, 100 of an ECG and 50 of an echo.
        seeds: Trainings, each with first weights, order and crops of its own.
        seed: Seed of the first of them.
        device: Device of the training; by default that of the run (`--device`).
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
        """Return the options that the settings of a run decide."""
        return {"seed": config.seed, "device": config.device}

    def own_models(self, tasks: Sequence[Task], models: Sequence[str]) -> tuple[str, ...]:
        """Return the card of the network for the modality of each task, unless the run names one itself.

        Raises:
            BadConfig: No task is of the modality of the network that was asked for.
        """
        modalities = {catalog.spec(task.dataset).modality for task in tasks}
        self._check_network(tasks, modalities)
        if any(model.startswith(PREFIX) for model in models):
            return ()
        networks = DEFAULT.values() if self.network == "auto" else (self.network,)
        return tuple(card_of(one) for one in networks if RECIPES[one].modality in modalities)

    @property
    def members(self) -> int:
        """Number of trainings."""
        return self.seeds

    def check_encoder(self, encoder: Encoder, task: Task) -> None:
        """Refuse every model but those of this protocol."""
        if getattr(encoder, "trained_by", "") != self.name:
            raise NotApplicable(f"{self.name} trains networks of its own, and {encoder.name} is trained already")

    def prepare(self, data: TaskData, encoder: Encoder, variant: str = "") -> "ScratchTraining":
        """Return the shared data of all trainings: rows for fitting, rows for choosing the epoch, and the recipe.

        Raises:
            NotApplicable: There is nothing to learn from.
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
        """Return the answers of one seed's network to test and validation recordings, and the summary of its training.

        Raises:
            NotApplicable: No epoch gave answers of finite quality.
        """
        network, details = prepared.train(self.seed + member)
        test, validation = (prepared.data.indices(split) for split in ("test", "validation"))
        held_out = prepared.predict(network, validation) if len(validation) else np.empty(0)
        return prepared.predict(network, test), held_out, details

    def combine(self, data: TaskData, answers: Sequence[Answers]) -> ProtocolOutput:
        """Return the mean of the answers; those of each training are its repeats."""
        fit, held = self._split(data)
        details = {
            "fitted_on": len(fit),
            "patients_fitted_on": len(np.unique(data.patients[fit])),
            "epoch_chosen_by": len(held),
        }
        output, summary = mean_of_trainings(data, answers, details), answers[0][2]
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
