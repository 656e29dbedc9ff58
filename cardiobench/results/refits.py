"""Keep the scores of the same model fitted to other draws of its training data, for comparisons between models."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cardiobench.results.record import Count, Number, Part

TRAINING_PATIENTS = "training patients"
TRAINING_SEEDS = "seeds of the training"
NO_TRAINING = "nothing"


@dataclass(frozen=True)
class Refits(Part):
    """Scores of refits, the draws of which two models may share.

    Attributes:
        varies: Source of variation: "training patients", "seeds of the training", or "nothing" for a
            protocol that does not train, whose scores are empty.
        seed: Seed of the draws, or of the first training.
        draws: Digest of what was drawn: training patients with their weights, or seeds. Results with the same digest
            have the same draws.
        count: Number of refits.
        scores: Mapping from metric key to the score of each refit, in the order of the draws, for all defined numbers of
            `ScoreResult.overall`.
    """

    varies: str
    seed: Count = 0
    draws: str = ""
    count: Count = 0
    scores: Mapping[str, tuple[Number, ...]] = field(default_factory=dict)
