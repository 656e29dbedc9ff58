"""Context of a score: origin of the result and settings of its bootstrap."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cardiobench.core.config import RESAMPLES
from cardiobench.core.setting import check_draws
from cardiobench.results.cost import Cost

PATIENT_IS_RECORD = (
    "nobody said which recordings are of one patient: each counts as a patient, so a patient may be in training and in test, "
    "and the interval may be too narrow"
)
"""Warning on every result of a dataset whose patients are unknown (`DatasetSpec.patient_is_record`)."""


@dataclass(frozen=True)
class ResultContext:
    """Facts about a result beyond its answers.

    Only `metrics`, `resamples`, `seed`, `refit_scores` and `seed_scores` change a number; protocol and variant choose
    the family for adjusting the p-value.

    Attributes:
        dataset: Name, version, digest and what is missing; empty for the name of the task's dataset alone.
        generated: Whether the recordings are phantoms or a synthetic twin.
        model: Name, revision, loader and preprocessing; empty for the source of the answers.
        seen_in_pretraining: Whether the model saw the dataset in pretraining; None if unknown.
        protocol: Name of the protocol.
        variant: Variant of the protocol.
        suite: Suite of the run, with its version; empty for none.
        profile: Profile of the run (`--profile`); empty for the default.
        options: Options and findings of the protocol.
        metrics: Folders of `hf_metrics/`, the first of which ranks; empty for those of the task and its kind.
        resamples: Number of bootstrap resamples, at least 1.
        seed: Seed of every draw.
        warnings: Sentences about model and data for the reader.
        refit_scores: Ranking metric of probes refitted on reweighted training patients (`training_weights`), on the same
            test rows; with two or more, the interval covers test and training patients.
        seed_scores: Ranking metric of trainings by other seeds, on the same test rows; with two or more, and without refits, the
            interval covers test patients and seeds.
        cost: Cost of the embeddings; None if there are none.
    """

    dataset: Mapping[str, Any] = field(default_factory=dict)
    generated: bool = False
    model: Mapping[str, Any] = field(default_factory=dict)
    seen_in_pretraining: bool | None = None
    protocol: str = "predictions"
    variant: str = ""
    suite: str = ""
    profile: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    metrics: Sequence[str] = ()
    resamples: int = RESAMPLES
    seed: int = 0
    warnings: Sequence[str] = ()
    refit_scores: Sequence[float] = ()
    seed_scores: Sequence[float] = ()
    cost: Cost | None = None

    def __post_init__(self):
        """Refuse invalid numbers of resamples."""
        check_draws(self.resamples, self.seed)

    @property
    def run(self) -> dict[str, str]:
        """Suite and profile of the run, as far as it has them, for the stamp."""
        return {name: value for name, value in (("suite", self.suite), ("profile", self.profile)) if value}


DEFAULT_CONTEXT = ResultContext()
