"""Means of one metric over tasks of a suite, with an interval over patients."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from cardiobench.core.config import RESAMPLES
from cardiobench.metrics.load import load_metric
from cardiobench.results.score_result import Estimate
from cardiobench.scoring.suites import suite_files
from cardiobench.stats.bootstrap import estimate, resample
from cardiobench.tasks.answers import TableAnswers
from cardiobench.tasks.task import metrics_of


@dataclass(frozen=True)
class TaskMean:
    """Definition of a mean over tasks in a suite.

    Attributes:
        suite: Name of the suite.
        name: Human-readable name of the mean.
        protocol: Protocol of the predictions.
        variant: Variant of the protocol.
        metric: Key of the metric.
        tasks: Tasks that enter the mean.
        floor: Score expected without looking at the recording.
        published: Published value of this mean; None for none.
        published_by: Model and source of the published value.
        note: Reason why the published value is not comparable, or its condition.
    """

    suite: str
    name: str
    protocol: str
    variant: str
    metric: str
    tasks: tuple[str, ...]
    floor: float
    published: float | None = None
    published_by: str = ""
    note: str = ""


@cache
def task_means() -> tuple[TaskMean, ...]:
    """Return the means of all suites."""
    means = []
    for suite, file in suite_files().items():
        for record in json.loads(file.read_text("utf-8")).get("means", ()):
            means.append(TaskMean(suite, **{**record, "tasks": tuple(record["tasks"])}))
    return tuple(means)


def mean_over_tasks(
    members: Sequence[TableAnswers], key: str, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[Estimate, int]:
    """Average a metric over tasks; resamples draw patients once for all tasks, so that the dependence between tasks is included.

    Args:
        members: Predictions of one model, one per task.
        key: Key of the metric's number.
        resamples: Number of resamples of the patients.
        seed: Seed of the draws.

    Returns:
        The mean over the tasks for which the metric is defined, and their number.
    """
    metrics = [
        next(metric for metric in map(load_metric, metrics_of(one.task)) if key in metric.numbers) for one in members
    ]
    samples = [one.sample() for one in members]
    values = [metric.value(sample)[key] for metric, sample in zip(metrics, samples, strict=True)]
    defined = [number for number, value in enumerate(values) if not np.isnan(value)]
    if not defined:
        return Estimate(np.nan, np.nan, np.nan, 0, 0, "undefined in every task"), 0
    ends = np.cumsum([0, *(len(samples[number]) for number in defined)])
    patients = np.concatenate([members[number].patients for number in defined])

    def statistic(weights: np.ndarray) -> dict[str, np.ndarray]:
        scores = [
            metrics[number].resamples(samples[number], weights[:, first:last])[key]
            for number, first, last in zip(defined, ends[:-1], ends[1:], strict=True)
        ]
        return {key: np.mean(scores, axis=0)}

    draws = resample(statistic, patients, resamples, seed)[key]
    return estimate(float(np.mean([values[number] for number in defined])), draws, patients), len(defined)
