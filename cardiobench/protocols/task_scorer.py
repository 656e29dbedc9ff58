"""The primary metric of a task for predictions that an analysis makes many times: value, resamples and floor."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from cardiobench.data.spec import Task
from cardiobench.protocols.base import ProtocolOutput, TaskData, aggregate
from cardiobench.results.score_result import Estimate
from cardiobench.scoring.bootstrap import estimate, percentile_interval, resample
from cardiobench.scoring.floors import best_constant, best_uninformed
from cardiobench.scoring.metrics import Metric, load_metric
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
        predictions = aggregate(data, output)
        joined = Predictions.join(self.references, predictions, self.task, source="the analysis", allow_missing=True)
        sample, metric, key = joined.sample(), self.metric, self.key
        draws = resample(
            lambda weights: {key: metric.resamples(sample, weights)[key]}, joined.patients, self.resamples, self.seed
        )
        return ScoreDraws(metric.value(sample)[key], draws[key], joined.patients)

    def floor(self) -> float:
        """Return the best score reachable on average on the test units without looking at a recording."""
        truth = self.references.loc[self.references["split"] == "test", "y_true"]
        code = {name: index for index, name in enumerate(self.task.classes)}
        values = truth.map(code).to_numpy(np.int64) if code else truth.to_numpy(np.float64)
        constant = best_constant(self.metric, self.key, self.task, values)
        return best_uninformed(self.key, values, len(code), constant).value
