"""Means and places of models from their scores and standard errors alone, as if the patients of two models differed."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import scipy

from cardiobench.results.refits import Refits
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.pairs import Standings, decide_pairs
from cardiobench.scoring.refits import ANSWERS, variation_of_means
from cardiobench.stats.bootstrap import LEVEL
from cardiobench.stats.paired import MeanDifferences, mean_difference, students, unpaired_differences
from cardiobench.stats.variability import TEST

Row = Mapping[str, ScoreResult]
"""Task -> result of one model."""


@dataclass(frozen=True)
class MeanScore:
    """Mean of one metric over tasks, for one model.

    Attributes:
        value: Mean.
        low: Lower end of the 95 % interval, within the range of the metric.
        high: Upper end of the interval.
        tasks: Number of tasks.
        example: Result of one of the tasks, whose metric and unit are those of the mean.
    """

    value: float
    low: float
    high: float
    tasks: int
    example: ScoreResult

    @property
    def kind(self) -> tuple[str, str, bool]:
        """Metric, unit and direction."""
        return metric_kind(self.example)


def metric_kind(result: ScoreResult) -> tuple[str, str, bool]:
    """Return the metric of a result, its unit and direction; only results of one kind are averaged."""
    return result.metric, result.unit, result.higher_is_better


def mean_scores(results: Iterable[ScoreResult]) -> list[MeanScore]:
    """Return the mean of each metric over the tasks of one model, with an interval of Student's t.

    The standard errors are those of `decide_unpaired`: they add up over the tasks of a dataset, because its tasks share
    patients and their correlation is unknown. Datasets are independent. Results without an interval do not count.

    Args:
        results: Results of one model, one for each task.
    """
    kinds: dict[tuple[str, str, bool], list[tuple[ScoreResult, float]]] = {}
    for result in results:
        if not math.isnan(error := standard_error(result)):
            kinds.setdefault(metric_kind(result), []).append((result, error))
    return [_mean_score(kinds[kind]) for kind in sorted(kinds)]


def _mean_score(results: Sequence[tuple[ScoreResult, float]]) -> MeanScore:
    by_dataset: dict[str, list[tuple[float, int]]] = {}
    for result, error in results:
        by_dataset.setdefault(result.task.partition("/")[0], []).append((error, result.score.n_patients))
    parts = [
        ((sum(error for error, _ in own) / len(results)) ** 2, min(patients for _, patients in own) - 1.0)
        for own in by_dataset.values()
    ]
    example = results[0][0]
    value = float(np.mean([result.score.value for result, _ in results]))
    found, (lowest, highest) = students(value, *mean_difference(parts)), example.number().range
    return MeanScore(value, max(found.low, lowest), min(found.high, highest), len(results), example)


def decide_unpaired(names: Sequence[str], rows: Sequence[Row]) -> Standings:
    """Compare models by the mean over the tasks that both answered, without their predictions.

    Different metrics are not averaged: a model is better than another if it is better by at least one metric and worse by
    none. The pairs of all metrics are corrected together. Results without an interval do not count.

    Args:
        names: Models.
        rows: Results of each model by task.
    """
    kinds: dict[tuple[str, str, bool], list[str]] = {}
    for row in rows:
        for task, result in row.items():
            tasks = kinds.setdefault(metric_kind(result), [])
            if task not in tasks:
                tasks.append(task)
    differences, shown = [], np.full(len(names), np.nan)
    for (metric, unit, _), tasks in sorted(kinds.items()):
        numbers = np.full((3, len(rows), len(tasks)), np.nan)
        for model, row in enumerate(rows):
            for column, task in enumerate(tasks):
                found = row.get(task)
                if found is not None and (found.metric, found.unit) == (metric, unit):
                    numbers[:, model, column] = found.score.value, standard_error(found), found.score.n_patients
        datasets = [task.partition("/")[0] for task in tasks]
        unpaired = unpaired_differences(numbers[0], numbers[1], numbers[2], datasets)
        differences.append(_with_refits(unpaired, rows, tasks, metric))
        if np.isnan(shown).all() and not np.isnan(numbers[0]).all():
            shown = np.array([its[~np.isnan(its)].mean() if not np.isnan(its).all() else np.nan for its in numbers[0]])
    return decide_pairs(names, shown, differences, [upwards for _, _, upwards in sorted(kinds)])


def _with_refits(found: MeanDifferences, rows: Sequence[Row], tasks: Sequence[str], metric: str) -> MeanDifferences:
    """Add the variation over refits that two models share; an interval that covers the training keeps it."""
    se, freedom, answers_only = found.se.copy(), found.freedom.copy(), found.answers_only.copy()
    for one, other in combinations(range(len(rows)), 2):
        common = [
            (rows[one][task], rows[other][task])
            for task in tasks
            if task in rows[one]
            and task in rows[other]
            and rows[one][task].metric == rows[other][task].metric == metric
        ]
        if not common or all(result.score.covers != TEST for pair in common for result in pair):
            continue
        refits = [[_of_metric(result.refits, metric) for result in each] for each in zip(*common, strict=True)]
        trained = variation_of_means(*refits)
        answers_only[one, other] = answers_only[other, one] = trained.covers == ANSWERS
        if trained.refits > 1 and trained.spread > 0:
            parts = [(se[one, other] ** 2, freedom[one, other]), (trained.spread**2, trained.refits - 1.0)]
            se[one, other], freedom[one, other] = mean_difference(parts)
            se[other, one], freedom[other, one] = se[one, other], freedom[one, other]
    return MeanDifferences(found.difference, se, freedom, answers_only)


def _of_metric(refits: Refits | None, metric: str) -> Refits | None:
    return refits and replace(refits, scores={metric: refits.scores[metric]} if metric in refits.scores else {})


def standard_error(result: ScoreResult) -> float:
    """Return the standard error of a score, or half the width of its interval over Student's t if that is larger.

    The interval also covers what the standard error does not, such as unequal patients.
    """
    score = result.score
    if math.isnan(score.low) or score.n_patients < 2:
        return math.nan
    half = (score.high - score.low) / 2 / float(scipy.stats.t.ppf((1 + LEVEL) / 2, score.n_patients - 1))
    return max(half, 0.0 if math.isnan(score.se) else score.se)
