"""The primary metric of a task for predictions that an analysis makes many times: value, resamples and floor."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cardiobench.data.labels import label_values
from cardiobench.data.spec import Task
from cardiobench.protocols.base import ProtocolOutput, TaskData, aggregate
from cardiobench.results.score_result import Estimate
from cardiobench.scoring.bootstrap import estimate, percentile_interval, resample, resampled_counts
from cardiobench.scoring.floors import best_constant, best_uninformed
from cardiobench.scoring.metrics import Metric, ScoringInput, load_metric
from cardiobench.scoring.predictions import Predictions


@dataclass(frozen=True)
class ScoreDraws:
    """A score, and the same score in every resample of the patients.

    Attributes:
        value: on the test units.
        draws: (B,); scores of one analysis and seed share their resamples, so they can be compared one by one.
        patients: of each scored unit.
    """

    value: float
    draws: np.ndarray
    patients: np.ndarray

    @property
    def estimate(self) -> Estimate:
        """The score with its 95 % interval over patients."""
        return estimate(self.value, self.draws, self.patients)

    def difference_from(self, other: "ScoreDraws") -> Estimate:
        """Return this score minus another on the same units, with the interval of the paired difference."""
        low, high = percentile_interval(self.draws - other.draws)
        return Estimate(self.value - other.value, low, high, len(self.patients), len(set(self.patients)))


@dataclass(frozen=True)
class TaskScorer:
    """Score predictions by the metric that ranks models on a task, on its test units.

    Attributes:
        task: the question.
        references: of all splits.
        resamples: of the patients.
        seed: of the draws.
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

    def score(self, data: TaskData, output: ProtocolOutput) -> ScoreDraws:
        """Score predictions; units whose recordings could not be read are left out."""
        return self.score_all(data, output.indices, [output.values])[0]

    def score_all(self, data: TaskData, indices: np.ndarray, values: Sequence[np.ndarray]) -> list[ScoreDraws]:
        """Score several predictions of the same recordings; patients are drawn once for all of them.

        Args:
            data: recordings of the task.
            indices: of those that are predicted.
            values: as in `ProtocolOutput`.
        """
        answers = [aggregate(data, ProtocolOutput(indices, one, {})) for one in values]
        joined = Predictions.join(self.references, answers[0], self.task, source="the analysis", allow_missing=True)
        samples = [joined.sample(), *(joined.with_answers(one).sample() for one in answers[1:])]
        scores = [self.metric.value(sample)[self.key] for sample in samples]
        draws = self._draws(samples, joined.patients)
        return [ScoreDraws(score, drawn, joined.patients) for score, drawn in zip(scores, draws, strict=True)]

    def _draws(self, samples: Sequence[ScoringInput], patients: np.ndarray) -> list[np.ndarray]:
        """Return the score of each sample in every resample of the patients, (B,) each."""
        metric, key, classes = self.metric, self.key, len(self.task.classes)
        if not (classes and metric.of_counts(key)):
            given = (lambda weights, sample=sample: {key: metric.resamples(sample, weights)[key]} for sample in samples)
            return [resample(one, patients, self.resamples, self.seed)[key] for one in given]
        # A function of the confusion table: its cells, counted by patient, stand for the rows.
        codes = np.stack([sample.y_true * classes + sample.y_pred for sample in samples], axis=1)
        counts = resampled_counts(codes, patients, self.resamples, self.seed)
        draws = []
        for column, weights in zip(codes.T, counts.swapaxes(0, 1), strict=True):
            cells = np.unique(column)
            drawn = metric.resamples(ScoringInput(cells // classes, cells % classes), weights[:, cells])
            draws.append(drawn[key])
        return draws

    def floor(self) -> float:
        """Return the best score reachable on average on the test units without looking at a recording."""
        truth = self.references.loc[self.references["split"] == "test", "y_true"]
        values = label_values(truth, self.task)
        constant = best_constant(self.metric, self.key, self.task, values)
        return best_uninformed(self.key, values, len(self.task.classes), constant).value
