"""Means of one metric over tasks of a suite, with an interval over patients."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from cardiobench.core.config import RESAMPLES
from cardiobench.metrics.load import load_metric
from cardiobench.results.score_result import Estimate
from cardiobench.scoring.suites import suite_files
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler, estimate_metric
from cardiobench.stats.influence import patient_influence
from cardiobench.stats.intervals import mean_interval
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
    """Average a metric over tasks, with an interval from those of the tasks and their correlation over shared patients.

    Args:
        members: Predictions of one model, one per task.
        key: Key of the metric's number.
        resamples: Number of resamples of the patients in the interval of a task.
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
    samplers = []
    for number in defined:
        present = samples[number].present_classes(len(members[number].task.classes))
        clusters = Clusters.of(members[number].patients)
        samplers.append(Sampler(samples[number], clusters, present, resamples, seed))
    every = pd.Index(pd.unique(np.concatenate([members[number].patients for number in defined])))
    mean, rows = float(np.mean([values[number] for number in defined])), sum(len(one.sample) for one in samplers)
    estimates = [estimate_metric(metrics[n], one, [key])[key] for n, one in zip(defined, samplers, strict=True)]
    lows, highs = (np.array([getattr(one, end) for one in estimates]) for end in ("low", "high"))
    if (lacking := np.flatnonzero(np.isnan(lows))).size:
        first = members[defined[lacking[0]]].task.name
        reason = f"no interval, as in {lacking.size} of {len(defined)} tasks: {first}: {estimates[lacking[0]].reason}"
        return Estimate(mean, np.nan, np.nan, rows, len(every), reason), len(defined)
    influence = np.zeros((len(every), len(defined)))
    for column, (number, one) in enumerate(zip(defined, samplers, strict=True)):
        patients = every.get_indexer(pd.unique(members[number].patients))
        influence[patients, column] = patient_influence(metrics[number], key, one.sample, one.clusters, one.present)
    low, high, se = mean_interval(np.array([one.value for one in estimates]), lows, highs, influence, len(every))
    return Estimate(mean, low, high, rows, len(every), se=se, method="class_mean"), len(defined)
