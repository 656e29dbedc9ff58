"""Rankings of several models by the mean of their scores over tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cardiobench.metrics.load import load_metric
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.number import Number
from cardiobench.results.verdict import LEVEL
from cardiobench.scoring.missing_answers import fill_missing
from cardiobench.scoring.places import Place, find_places
from cardiobench.scoring.ranks import Contest
from cardiobench.stats.bootstrap import MIN_PATIENTS
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.influence import patient_influence
from cardiobench.stats.paired import comparable_labels
from cardiobench.stats.unequal import stretch
from cardiobench.tasks.answers import TableAnswers


@dataclass(frozen=True)
class Ranking:
    """Models under one protocol, ranked by the mean of one metric over tasks.

    Attributes:
        protocol: Protocol, or the condition for predictions from elsewhere.
        tasks: Tasks that all of the models answered.
        number: The metric.
        unit: Unit of the labels; empty for classes.
        places: The models; see `find_places`.
        references: Mapping from reference to its mean over the same tasks; it has no place.
        left_out: Models without predictions for any of the tasks.
        generated: Whether the recordings are phantoms or synthetic twins.
        errors: Mapping from pair of models to standard error over patients of the difference of their scores.
        patients: Number of patients behind the errors.
    """

    protocol: str
    tasks: tuple[str, ...]
    number: Number
    unit: str
    places: tuple[Place, ...]
    references: Mapping[str, float] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    generated: bool = False
    errors: Mapping[tuple[str, str], float] = field(default_factory=dict)
    patients: int = 0


@dataclass(frozen=True)
class TaskScore:
    """One model on one task: score, influence of each patient, and degrees of freedom."""

    score: float
    influence: Mapping[str, float]
    freedom: float
    rows: Mapping[str, int]


def rank_models(
    contests: Mapping[Contest, Mapping[str, TableAnswers]],
    beside: Mapping[Contest, Mapping[str, TableAnswers]] | None = None,
    *,
    together: bool = False,
) -> list[Ranking]:
    """Rank models by the mean over tasks, one ranking for each protocol and metric.

    Different metrics are not averaged. Patients shared by several tasks count once, with their influence on all of
    them. Missing answers count as wrong.

    Args:
        contests: Contest (task, protocol) -> model -> its predictions for the same units.
        beside: Contest -> reference -> its predictions for the same units.
        together: Whether the family-wise error rate holds for all rankings together instead of each ranking.
    """
    tables: dict[tuple[str, str, str], dict[str, Mapping[str, TableAnswers]]] = {}
    metrics: dict[str, Metric] = {}
    for (task, protocol), models in contests.items():
        every = [*models.values(), *(beside or {}).get((task, protocol), {}).values()]
        metric = _metric(every)
        metrics[metric.primary_key] = metric
        tables.setdefault((protocol, metric.primary_key, every[0].task.unit), {})[task] = models
    rankings = []
    for (protocol, key, _), of_tasks in tables.items():
        references = {task: (beside or {}).get((task, protocol), {}) for task in of_tasks}
        level = LEVEL / len(tables) if together else LEVEL
        if (ranking := _rank(protocol, metrics[key], of_tasks, references, level)) is not None:
            rankings.append(ranking)
    return rankings


def _rank(
    protocol: str,
    metric: Metric,
    of_tasks: Mapping[str, Mapping[str, TableAnswers]],
    beside: Mapping[str, Mapping[str, TableAnswers]],
    level: float,
) -> Ranking | None:
    names, tasks = _common(of_tasks)
    if len(names) < 2:
        return None
    scored = {name: [_score(of_tasks[task][name], metric) for task in tasks] for name in names}
    first = of_tasks[tasks[0]][names[0]]
    scores = np.array([np.mean([one.score for one in scored[name]]) for name in names])
    patients = sorted({patient for ones in scored.values() for one in ones for patient in one.influence})
    moved = np.array([[sum(one.influence.get(who, 0.0) for one in scored[name]) for who in patients] for name in names])
    moved /= len(tasks)
    many = len(patients)
    own = scored[names[0]]
    by_dataset: dict[str, list[float]] = {}
    for task, one in zip(tasks, own, strict=True):
        by_dataset.setdefault(of_tasks[task][names[0]].task.dataset, []).append(one.freedom)
    freedom = sum(min(ones) for ones in by_dataset.values()) if many >= MIN_PATIENTS else np.nan
    sizes = [sum(one.rows.get(who, 0) for one in own) for who in patients]
    clusters = Clusters.of(np.repeat(np.arange(many), sizes))
    covariance = moved @ moved.T * many / max(many - 1, 1)
    factor = stretch(clusters, 0.0, 0.0) if len(by_dataset) == len(tasks) == 1 else 1.0
    places = find_places(
        names, scores, covariance, freedom, higher_is_better=metric.higher_is_better, factor=factor, level=level
    )
    variance = np.diag(covariance)[:, None] + np.diag(covariance) - 2 * covariance
    spread = factor * np.sqrt(np.maximum(variance, 0))
    errors = {(one, other): float(spread[i, j]) for i, one in enumerate(names) for j, other in enumerate(names)}
    references = {
        name: float(np.mean([_score(beside[task][name], metric).score for task in tasks]))
        for name in sorted(set.intersection(*(set(beside[task]) for task in tasks)))
    }
    left_out = tuple(sorted({name for models in of_tasks.values() for name in models} - set(names)))
    return Ranking(
        protocol,
        tasks,
        metric.primary,
        first.task.unit,
        tuple(places),
        references,
        left_out,
        errors=errors,
        patients=many,
    )


def _common(of_tasks: Mapping[str, Mapping[str, TableAnswers]]) -> tuple[list[str], tuple[str, ...]]:
    """Return the models and the tasks that all of them answered; models with the fewest tasks are dropped until there is such a task."""
    answered = {name: {task for task, models in of_tasks.items() if name in models} for models in of_tasks.values() for name in models}  # fmt: skip
    names = sorted(answered, key=lambda name: (len(answered[name]), name))
    while len(names) > 1:
        if tasks := set.intersection(*(answered[name] for name in names)):
            return sorted(names), tuple(sorted(tasks))
        names = names[1:]
    return names, ()


def _metric(several: Sequence[TableAnswers]) -> Metric:
    """Return the metric for comparing several predictions for one task."""
    task = several[0].task
    return task.rules.compared(load_metric(task.metrics[0]), [answers.sample() for answers in several])


def _score(answers: TableAnswers, metric: Metric) -> TaskScore:
    answers = fill_missing(answers, worst=True)
    sample, clusters = answers.sample(), Clusters.of(answers.patients)
    key, present = metric.primary_key, sample.present_classes(len(answers.task.classes))
    names = [f"{answers.task.dataset} {who}" for who in dict.fromkeys(answers.patients)]
    if sample.multilabel and (chosen := comparable_labels(sample.y_true, clusters)).any():
        sample, present = sample.take_classes(chosen), present[chosen]
    moved = patient_influence(metric, key, sample, clusters, present)
    freedom = float(clusters.count - 1)
    if sample.multilabel:
        freedom = min(freedom, sum(clusters.count_in(column == 1) - 1 for column in sample.y_true.T))
    elif len(present):
        freedom = min(clusters.count_in(sample.y_true == code) for code in np.flatnonzero(present)) - 1
    return TaskScore(
        float(metric.value(sample)[key]),
        dict(zip(names, moved.tolist(), strict=True)),
        max(freedom, 1.0),
        dict(zip(names, clusters.rows.tolist(), strict=True)),
    )
