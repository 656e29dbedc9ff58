"""The ranking metric of a task for answers that a study gives many times over: a point, its resamples, its floor."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from cardiobench.data.spec import Task
from cardiobench.protocols.base import ProtocolOutput, TaskData, aggregate
from cardiobench.results.score_result import Estimate
from cardiobench.scoring.bootstrap import estimate, percentile_interval, resample
from cardiobench.scoring.floors import best_constant
from cardiobench.scoring.metrics import Metric, load_metric
from cardiobench.scoring.predictions import Predictions


@dataclass(frozen=True)
class Scored:
    """One score, and the same score in every resample of the patients.

    Attributes:
        value: on the test units.
        draws: (B,); scores of one study with one seed share their resamples, so they can be compared one by one.
        patients: of each scored unit.
    """

    value: float
    draws: np.ndarray
    patients: np.ndarray

    @property
    def estimate(self) -> Estimate:
        """With its 95 % interval over patients."""
        return estimate(self.value, self.draws, self.patients)

    def change_from(self, other: "Scored") -> Estimate:
        """This score minus another on the same units, with the interval of the paired difference."""
        low, high = percentile_interval(self.draws - other.draws)
        return Estimate(self.value - other.value, low, high, len(self.patients), len(set(self.patients)))


@dataclass(frozen=True)
class Ranking:
    """The metric that ranks models on a task, on its test units.

    Attributes:
        task: the question.
        truth: references of all splits.
        resamples: of the patients.
        seed: of the draws.
    """

    task: Task
    truth: pd.DataFrame
    resamples: int
    seed: int

    @property
    def metric(self) -> Metric:
        """The first metric of the task."""
        return load_metric(self.task.metrics[0])

    @property
    def key(self) -> str:
        """Its name, as in results."""
        return self.metric.primary_key

    def score(self, data: TaskData, output: ProtocolOutput) -> Scored:
        """Score answers of a protocol; units whose recordings could not be read are left out."""
        answers = aggregate(data, output)
        joined = Predictions.join(self.truth, answers, self.task, source="the study", allow_missing=True)
        sample, metric, key = joined.sample(), self.metric, self.key
        draws = resample(
            lambda weights: {key: metric.resamples(sample, weights)[key]}, joined.patients, self.resamples, self.seed
        )
        return Scored(metric.value(sample)[key], draws[key], joined.patients)

    def floor(self) -> float:
        """Score of the best constant answer on the test units."""
        truth = self.truth.loc[self.truth["split"] == "test", "y_true"]
        code = {name: place for place, name in enumerate(self.task.classes)}
        values = truth.map(code).to_numpy(np.int64) if code else truth.to_numpy(np.float64)
        return best_constant(self.metric, self.key, self.task, values).value
