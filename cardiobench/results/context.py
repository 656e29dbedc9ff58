"""Describe the origin of a score and the settings of its bootstrap."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cardiobench.core.config import RESAMPLES
from cardiobench.core.setting import check_draws
from cardiobench.results.cost import Cost

PATIENT_IS_RECORD = (
    "patients are unknown: each recording counts as its own patient, so a patient may be in both training and test, "
    "and the interval may be too narrow"
)
"""Warning on every result of a dataset whose patients are unknown (`DatasetSpec.patient_is_record`)."""
ABSENT_CLASS = "no scored row is "
"""Start of the warning on a class without a scored row, which the name of the class follows."""


@dataclass(frozen=True)
class ResultContext:
    """Facts about a result other than its predictions.

    Only `metrics`, `resamples`, `seed`, `refit_scores` and `seed_scores` affect scores. Protocol and variant select the
    family for the adjustment of p-values.

    Attributes:
        dataset: Name, version, digest and missing recordings; if empty, only the name is taken from the task.
        generated: Whether the recordings are phantoms or a synthetic twin.
        model: Name, revision, loader and preprocessing; if empty, taken from the source of the predictions.
        seen_in_pretraining: Whether the model saw the dataset in pretraining; None if unknown.
        protocol: Name of the protocol.
        variant: Variant of the protocol.
        suite: Suite and version of the run; empty for none.
        profile: Profile of the run (`--profile`); empty for the default.
        options: Options and details of the protocol.
        metrics: Folders of `hf_metrics/`, with the ranking metric first; empty for the metrics of the task and its
            kind.
        resamples: Number of bootstrap resamples, at least 1.
        seed: Random seed.
        warnings: Warnings about model and data for readers.
        refit_scores: Ranking scores of probes refitted on reweighted training patients (`training_weights`), on the
            same test rows. With at least two, the interval covers test and training patients.
        seed_scores: Ranking scores of training runs with other seeds, on the same test rows. With at least two and
            without refits, the interval covers test patients and seeds.
        cost: Cost of encoding; None if there are no embeddings.
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
        """Reject invalid numbers of resamples."""
        check_draws(self.resamples, self.seed)

    @property
    def run(self) -> dict[str, str]:
        """Suite and profile of the run for the stamp, if set."""
        return {name: value for name, value in (("suite", self.suite), ("profile", self.profile)) if value}


DEFAULT_CONTEXT = ResultContext()
