"""Primary metric of a task for the many predictions of an analysis: value, resamples and floor."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from cardiobench.data.spec import Task
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.protocols.base import TaskData, Units
from cardiobench.results.refits import NO_TRAINING, TRAINING_PATIENTS
from cardiobench.results.score_result import Estimate
from cardiobench.scoring.compare import compare_samples
from cardiobench.scoring.refits import Variation, on_labels, variation
from cardiobench.scoring.unit_ids import match_units
from cardiobench.stats.bootstrap import FEW, MIN_PATIENTS, resample, resampled_counts
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler, estimate_metric
from cardiobench.stats.variability import BOTH, TEST
from cardiobench.tasks.floors import best_constant, best_uninformed
from cardiobench.tasks.labels import label_values

Refits = Sequence[tuple[np.ndarray, np.ndarray | None]]
"""Values and weights of the classes of each refit."""


@dataclass(frozen=True)
class ScoreDraws:
    """A score and its values in the bootstrap resamples.

    Attributes:
        value: Score on the test units.
        draws: Scores in the resamples, (B,); scores of one analysis and seed share their resamples, so they can be
            compared.
        patients: Patient of each scored unit.
    """

    value: float
    draws: np.ndarray
    patients: np.ndarray


@dataclass(frozen=True)
class TaskScorer:
    """Score predictions by the ranking metric of a task on its test units.

    Attributes:
        task: Task to score.
        references: References of all splits.
        resamples: Number of resamples of the patients.
        seed: Seed of the draws.
    """

    task: Task
    references: pd.DataFrame
    resamples: int
    seed: int

    @property
    def metric(self) -> Metric:
        """The primary metric of the task."""
        return load_metric(self.task.metrics[0])

    @property
    def key(self) -> str:
        """Name of the metric, as in results."""
        return self.metric.primary_key

    @property
    def unit(self) -> str:
        """Unit of the metric's values; empty for a fraction."""
        return self.metric.primary.value_unit(self.task.unit)

    def of(self, data: TaskData, indices: np.ndarray) -> "RecordingsScorer":
        """Return a scorer for any number of predictions of the same recordings."""
        return RecordingsScorer(self, data, indices)

    def floor(self) -> float:
        """Return the best score reachable on average on the test units without looking at a recording."""
        truth = self.references.loc[self.references["split"] == "test", "y_true"]
        values = label_values(truth, self.task)
        constant = best_constant(self.metric, self.key, self.task, values)
        return best_uninformed(self.key, values, len(self.task.classes), constant, self.metric).value


class RecordingsScorer:
    """Scores predictions of fixed recordings; work that does not depend on the predictions is done once."""

    def __init__(self, scorer: TaskScorer, data: TaskData, indices: np.ndarray):
        """Match the units of the recordings with their references.

        Args:
            scorer: Scorer of the task.
            data: Recordings of the task.
            indices: Indices of the predicted recordings.

        Raises:
            BadPredictions: A recording belongs to no unit of the test split.
        """
        self._scorer, self._task, self._units = scorer, data.task, Units.of(data, indices)
        ids = pd.Series(self._units.ids).astype(str)
        wanted, place = match_units(scorer.references, ids, data.task, "the analysis", allow_missing=True)
        answered, self._rows = wanted[place >= 0], place[place >= 0]
        self._patients = answered["patient_id"].to_numpy()
        self._truth = label_values(answered["y_true"], data.task)

    def score_all(
        self, values: Sequence[np.ndarray], cuts: Sequence[np.ndarray | None] | None = None
    ) -> list[ScoreDraws]:
        """Score several predictions, as in `ProtocolOutput`, with the same resamples.

        Args:
            values: Numbers or probabilities of each prediction.
            cuts: Weights of the classes of each prediction, (classes,); None for no weights.
        """
        samples = [self._sample(one, cut) for one, cut in zip(values, cuts or [None] * len(values), strict=True)]
        metric, key, classes = self._scorer.metric, self._scorer.key, len(self._task.classes)
        if not (classes and metric.of_counts(key)):
            return [ScoreDraws(metric.value(sample)[key], self._drawn(sample), self._patients) for sample in samples]
        # For functions of the confusion table, its cells counted by patient replace the rows.
        codes = np.stack([sample.y_true * classes + sample.y_pred for sample in samples], axis=1)
        counts = resampled_counts(codes, self._patients, self._scorer.resamples, self._scorer.seed)
        scores = []
        for column, weights in zip(codes.T, counts.swapaxes(0, 1), strict=True):
            rows = np.bincount(column, minlength=weights.shape[1])
            cells = np.flatnonzero(rows)
            every = np.vstack([rows, weights])[:, cells]
            drawn = metric.resamples(ScoringInput(cells // classes, cells % classes), every)[key]
            scores.append(ScoreDraws(float(drawn[0]), drawn[1:], self._patients))
        return scores

    def estimate(self, values: np.ndarray, cut: np.ndarray | None = None) -> Estimate:
        """Score predictions, with or without thresholds, with the interval that a result of them would have."""
        sample, scorer = self._sample(values, cut), self._scorer
        present = sample.present_classes(len(self._task.classes))
        sampler = Sampler(sample, Clusters.of(self._patients), present, scorer.resamples, scorer.seed)
        return estimate_metric(scorer.metric, sampler, (scorer.key,))[scorer.key]

    def difference(
        self,
        values: np.ndarray,
        others: np.ndarray,
        cuts: tuple[np.ndarray | None, np.ndarray | None] = (None, None),
        refits: tuple[Refits, Refits] = ((), ()),
    ) -> Estimate:
        """Return the difference of two scores with the interval by which `compare` judges two models.

        Args:
            values: Numbers or probabilities of one prediction.
            others: Those of the other.
            cuts: Weights of the classes of each; None for no weights.
            refits: Values and weights of refits of each, on the same draws or on draws of different patients. The
                interval then covers training patients; without refits it is that of two fixed models.
        """
        scorer, clusters = self._scorer, Clusters.of(self._patients)
        first, second = self._sample(values, cuts[0]), self._sample(others, cuts[1])

        def vary(metric: Metric, labels: np.ndarray) -> Variation:
            key = metric.primary_key
            scores = ([metric.value(on_labels(self._sample(*one), labels))[key] for one in each] for each in refits)
            return variation(TRAINING_PATIENTS if all(refits) else NO_TRAINING, *scores)

        classes, draws = len(self._task.classes), (scorer.resamples, scorer.seed)
        scores, found, varied, _ = compare_samples(scorer.metric, first, second, clusters, classes, vary, *draws)
        few = FEW if clusters.count < MIN_PATIENTS else ""
        covers = BOTH if varied.covers == BOTH else TEST
        return Estimate(scores[0] - scores[1], found.low, found.high, len(first), clusters.count, few, covers=covers)

    def _sample(self, values: np.ndarray, cut: np.ndarray | None = None) -> ScoringInput:
        """Return the scored rows with their predictions.

        Takes numbers (N,) or probabilities (N, classes) of all recordings, and the weights of the classes, (classes,).
        """
        means, rules = self._units.mean(values)[self._rows].astype(np.float64), self._task.rules
        sample = rules.scoring_input(self._truth, means)
        return sample if cut is None else replace(sample, y_pred=rules.scoring_input(self._truth, means * cut).y_pred)

    def _drawn(self, sample: ScoringInput) -> np.ndarray:
        """Return the score in every resample of the patients. The shape is (B,)."""
        metric, key = self._scorer.metric, self._scorer.key

        def statistic(weights: np.ndarray) -> dict[str, np.ndarray]:
            return {key: metric.resamples(sample, weights)[key]}

        return resample(statistic, self._patients, self._scorer.resamples, self._scorer.seed)[key]
