"""Finetune: the model's own network trained on the training patients of a task."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import MissingExtra, NotApplicable
from cardiobench.data.spec import Task
from cardiobench.extensions.finetune.recipe import MODES, FinetuneRecipe, mode_of
from cardiobench.models.base import Encoder
from cardiobench.protocols.base import ProtocolOutput, TaskData
from cardiobench.protocols.ensemble import EnsembleProtocol
from cardiobench.protocols.learnable import check_learnable
from cardiobench.protocols.training.ensemble import Answers, mean_of_trainings
from cardiobench.protocols.training.split import fit_and_held

if TYPE_CHECKING:
    from cardiobench.extensions.finetune.training import FinetuneTraining

COMPONENT = "protocol finetune"
VERSION = 1
LEARNER = "fine-tuning"
DIVERGED = (
    "at no rate did fine-tuning do better on the {} recordings that choose it than one answer for all: it diverged or learned nothing. "
    "Give smaller finetune.rates, or more recordings"
)


@dataclass(frozen=True)
class Finetune(FinetuneRecipe, EnsembleProtocol):
    """A model's own network trained on the training patients of a task, with a linear head on the pooled vector of a recording.

    Recordings pass through the model's own transform and encoder; parts are pooled as those of stored vectors are. Budget and
    seeds are the same for all models. Validation patients choose the epoch of each training and, for all seeds together, one of
    three learning rates, by macro AUROC (of a regression by the squared error); without a validation split a fifth of the
    training patients do. Test patients take no part. The answer is the mean of `seeds` trainings, and the interval of its score
    covers their spread. Trainings are shared out to the processes of a run; each is computed whole by one process, on a CPU by
    one thread. Each keeps a checkpoint after every epoch, and its trained weights, below the cache folder. The model itself
    stays as it is.

    Memory: the network, its gradients and `micro_batch` x `parts` parts; at most 4 GB of prepared recordings. Time: rates x
    seeds x epochs x recordings x parts.
    """

    name = "finetune"
    condition = "fine-tuned"
    selecting_options = frozenset({"modes"})
    learns = True
    keeps_training = True
    seeds_in_interval = True
    beside = "probe"

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return the options that the settings of a run decide."""
        return {"seed": config.seed, "device": config.device}

    def variants(self, task: Task) -> tuple[str, ...]:
        """Return the names of the chosen trained parts under these options."""
        return tuple(map(self.variant, dict.fromkeys(self.modes)))

    def result_variants(self, task: Task) -> tuple[str, ...]:
        """Return the names of all trained parts under these options."""
        return tuple(map(self.variant, MODES))

    @property
    def members(self) -> int:
        """Number of trainings: each seed at each rate."""
        return self.seeds * len(self.rates)

    def check(self, task: Task) -> None:
        """Refuse other forms of answer, and LoRA without its package."""
        super().check(task)
        if "lora" in self.modes and find_spec("peft") is None:
            raise MissingExtra(f"'lora' in {self.name}.modes", "finetune", "peft")

    def check_encoder(self, encoder: Encoder, task: Task) -> None:
        """Refuse a model without a PyTorch network."""
        from cardiobench.extensions.finetune.network import check_network

        check_network(encoder, self.name)

    def prepare(self, data: TaskData, encoder: Encoder, variant: str = MODES[0]) -> "FinetuneTraining":
        """Return the shared data of all trainings: recordings, rows for fitting, and rows for choosing.

        Raises:
            NotApplicable: There is no network, or nothing to learn from.
        """
        self.check(data.task)
        self.check_encoder(encoder, data.task)
        check_learnable(data, LEARNER)
        from cardiobench.extensions.finetune.training import FinetuneTraining
        from cardiobench.models.device import choose_device

        device = choose_device(self.device, f"{self.name}.device")
        return FinetuneTraining(data, encoder, *self._split(data), mode_of(variant), self, device)

    def train(self, prepared: "FinetuneTraining", member: int) -> Answers:
        """Return the answers of one seed at one rate to test and validation recordings, and the summary of the training.

        A training whose answers were never finite has none, and says why.
        """
        seed, rate = self.seed + member // len(self.rates), self.rates[member % len(self.rates)]
        try:
            network, details = prepared.train(seed, rate)
        except NotApplicable as error:
            return np.empty(0), np.empty(0), {"validation_quality": -np.inf, "reason": str(error)}
        test, validation = (prepared.data.indices(split) for split in ("test", "validation"))
        return prepared.predict(network, test), prepared.predict(network, validation), details

    def combine(self, data: TaskData, answers: Sequence[Answers]) -> ProtocolOutput:
        """Return the mean of the answers at the rate that is best on validation patients, by the mean over seeds.

        Raises:
            NotApplicable: No learning rate gave predictions for all seeds.
        """
        by_rate = {rate: list(answers[number :: len(self.rates)]) for number, rate in enumerate(self.rates)}
        quality = {rate: float(np.mean([one[2]["validation_quality"] for one in by_rate[rate]])) for rate in by_rate}
        best = max(quality, key=lambda rate: quality[rate])
        if not np.isfinite(quality[best]):
            raise NotApplicable(str(next(one[2]["reason"] for one in answers if "reason" in one[2])))
        fit, held = self._split(data)
        details = {
            "fitted_on": len(fit),
            "patients_fitted_on": len(np.unique(data.patients[fit])),
            "chosen_by": len(held),
            "rate": best,
            "quality_by_rate": {str(rate): value if np.isfinite(value) else None for rate, value in quality.items()},
        }
        output = mean_of_trainings(data, by_rate[best], details)
        return (
            replace(output, warnings=(DIVERGED.format(len(held)),)) if quality[best] <= constant(data.task) else output
        )

    def _split(self, data: TaskData) -> tuple[np.ndarray, np.ndarray]:
        return fit_and_held(data, self.seed, LEARNER)


def constant(task: Task) -> float:
    """Return the quality of one answer for all recordings (`TrainingObjective.quality`): half the pairs, or the variance of the labels."""
    return 0.5 if task.classes else -1.0
