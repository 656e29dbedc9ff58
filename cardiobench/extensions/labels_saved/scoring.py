"""Score a learner on all draws of each subset."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from cardiobench.core.errors import NotApplicable
from cardiobench.extensions.labels_saved.subsets import PatientSubset
from cardiobench.models.base import Encoder
from cardiobench.protocols.base import PredictionProtocol, ProtocolOutput, TaskData
from cardiobench.protocols.cut import cut_by_validation
from cardiobench.protocols.task_scorer import ScoreDraws, TaskScorer
from cardiobench.stats.variability import joint_resamples


@dataclass(frozen=True)
class ScoredSubsets:
    """Scores of one learner.

    Attributes:
        learner: Protocol and variant.
        reference: Name of the reference if the learner is one; otherwise empty.
        subsets: Subsets used for training.
        scores: Scores of all draws, by subset.
        notes: Sentences on omitted subsets.
    """

    learner: str
    reference: str
    subsets: tuple[PatientSubset, ...]
    scores: tuple[tuple[ScoreDraws, ...], ...]
    notes: tuple[str, ...]

    @property
    def means(self) -> list[float]:
        """Mean score over draws, by subset."""
        return [float(np.mean([one.value for one in scored])) for scored in self.scores]

    @property
    def patients(self) -> np.ndarray:
        """Patient of each scored test unit."""
        return self.scores[0][0].patients

    def column(self, subset: PatientSubset) -> str:
        """Return the name of a point on the curve."""
        return f"{self.learner} at {subset.patients}"

    def resamples(self, seed: int) -> pd.DataFrame:
        """Return mean scores in joint resamples of test and training patients, one column per subset."""
        values = [np.array([one.value for one in scored]) for scored in self.scores]
        draws = [np.stack([one.draws for one in scored]) for scored in self.scores]
        found = joint_resamples(values, draws, [one.share for one in self.subsets], seed)
        return pd.DataFrame(found, columns=[self.column(one) for one in self.subsets])

    def draws(self) -> pd.DataFrame:
        """Return one row per draw."""
        return pd.DataFrame([
            {"learner": self.learner, "patients": subset.patients, "draw": number, "score": one.value}
            for subset, scored in zip(self.subsets, self.scores, strict=True)
            for number, one in enumerate(scored)
        ])  # fmt: skip


def label_of(learner: PredictionProtocol, variant: str) -> str:
    """Return the name of a learner and its variant."""
    return f"{learner.name}.{variant}" if variant else learner.name


def score_subsets(
    learner: PredictionProtocol, variant: str, subsets: Sequence[PatientSubset], scorer: TaskScorer, encoder: Encoder
) -> ScoredSubsets:
    """Train a learner on every draw of every subset and score it on the test patients.

    A subset is omitted with a note if any of its draws is not applicable.

    Raises:
        NotApplicable: The learner does not apply to the full training set.
    """
    name = label_of(learner, variant)
    kept, scores, notes = [], [], []
    for subset in subsets:
        try:
            outputs = [
                _answers(learner, variant, data, encoder, f"{name}-{subset.share}-{number}")
                for number, data in enumerate(subset.draws)
            ]
        except NotApplicable as error:
            if subset.share == 1:
                raise
            notes.append(f"{name} learns nothing from {subset.patients} patients, which are left out: {error}")
            continue
        test_scorer = scorer.of(subset.draws[0], outputs[0].indices)
        kept.append(subset)
        scores.append(tuple(test_scorer.score_all([one.values for one in outputs], [one.cut for one in outputs])))
    return ScoredSubsets(name, learner.reference, tuple(kept), tuple(scores), tuple(notes))


def _answers(learner: PredictionProtocol, variant: str, data: TaskData, encoder: Encoder, place: str) -> ProtocolOutput:
    """Predict the test recordings with the protocol itself."""
    if data.work is not None:
        data = replace(data, work=data.work / place)
    return cut_by_validation(data, learner.without_refits().predict(data, encoder, variant))
