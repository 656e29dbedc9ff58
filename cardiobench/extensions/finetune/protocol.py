"""Fine-tune a model's network on the training patients of a task."""

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
    "fine-tuning diverged or learned nothing: no learning rate beats a constant answer on the {} validation recordings. "
    "Give smaller finetune.rates, or more recordings"
)


@dataclass(frozen=True)
class Finetune(FinetuneRecipe, EnsembleProtocol):
    """Fine-tune a model's network with a linear head on the pooled vectors of recordings.

    Recordings pass through the model's transform and encoder, and parts are pooled as for stored vectors. All models
    have the same budget and seeds. Validation patients select the epoch of each run and one of three learning rates for
    all seeds, by macro AUROC or squared error. Without a validation split, a fifth of the training patients are held
    out. Test patients are never used for selection. Predictions are averaged over `seeds` runs, and the interval of the
    score includes their spread. Runs can be distributed over worker processes; each uses one process and, on a CPU, one
    thread. Every run stores a checkpoint after each epoch and the trained weights below the cache folder. The original
    model does not change.

    Memory: the network, its gradients, `micro_batch` x `parts` parts, and at most 4 GB of prepared recordings. Time:
    rates x seeds x epochs x recordings x parts.
    """

    name = "finetune"
    condition = "fine-tuned"
    formulas = ("linear_cka",)
    selecting_options = frozenset({"modes"})
    learns = True
    keeps_training = True
    seeds_in_interval = True
    beside = "probe"

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return options that depend on the run settings."""
        return {"seed": config.seed, "device": config.device}

    def variants(self, task: Task) -> tuple[str, ...]:
        """Return the variants of the chosen trained parts."""
        return tuple(map(self.variant, dict.fromkeys(self.modes)))

    def result_variants(self, task: Task) -> tuple[str, ...]:
        """Return the variants of all trained parts."""
        return tuple(map(self.variant, MODES))

    @property
    def members(self) -> int:
        """Number of training runs: seeds x rates."""
        return self.seeds * len(self.rates)

    def check(self, task: Task) -> None:
        """Reject unsupported forms of answer, and LoRA if `peft` is not installed."""
        super().check(task)
        if "lora" in self.modes and find_spec("peft") is None:
            raise MissingExtra(f"'lora' in {self.name}.modes", "finetune", "peft")

    def check_encoder(self, encoder: Encoder, task: Task) -> None:
        """Reject models without a PyTorch network."""
        from cardiobench.extensions.finetune.network import check_network

        check_network(encoder, self.name)

    def prepare(self, data: TaskData, encoder: Encoder, variant: str = MODES[0]) -> "FinetuneTraining":
        """Return data shared by all training runs: recordings, training rows and validation rows.

        Raises:
            NotApplicable: There is no trainable network, or no training data.
        """
        self.check(data.task)
        self.check_encoder(encoder, data.task)
        check_learnable(data, LEARNER)
        from cardiobench.extensions.finetune.training import FinetuneTraining
        from cardiobench.models.device import choose_device

        device = choose_device(self.device, f"{self.name}.device")
        return FinetuneTraining(data, encoder, *self._split(data), mode_of(variant), self, device)

    def train(self, prepared: "FinetuneTraining", member: int) -> Answers:
        """Return test and validation predictions of one seed and rate, with a training summary.

        If a run never gives finite predictions, only the summary is returned.
        """
        seed, rate = self.seed + member // len(self.rates), self.rates[member % len(self.rates)]
        try:
            network, details = prepared.train(seed, rate)
        except NotApplicable as error:
            return np.empty(0), np.empty(0), {"validation_quality": -np.inf, "reason": str(error)}
        test, validation = (prepared.data.indices(split) for split in ("test", "validation"))
        return prepared.predict(network, test), prepared.predict(network, validation), details

    def combine(self, data: TaskData, answers: Sequence[Answers]) -> ProtocolOutput:
        """Return the mean prediction at the learning rate with the best mean validation quality.

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
        output = mean_of_trainings(data, by_rate[best], details, self.seed)
        return (
            replace(output, warnings=(DIVERGED.format(len(held)),)) if quality[best] <= constant(data.task) else output
        )

    def _split(self, data: TaskData) -> tuple[np.ndarray, np.ndarray]:
        return fit_and_held(data, self.seed, LEARNER)


def constant(task: Task) -> float:
    """Return the quality of a constant answer (see `TrainingObjective.quality`)."""
    return 0.5 if task.classes else -1.0
