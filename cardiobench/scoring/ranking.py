"""Rankings of several models by the mean of their scores over tasks, from predictions for the same units."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from cardiobench.metrics.load import load_metric
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.number import Number
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.refits import Refits
from cardiobench.scoring.missing_answers import fill_missing
from cardiobench.scoring.pairs import Place, Standings, decide_pairs, is_complete, table_tasks
from cardiobench.scoring.ranks import Contest
from cardiobench.scoring.refits import ANSWERS, refit_scores, variation_of_means
from cardiobench.stats.bootstrap import MIN_PATIENTS
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.influence import patient_changes, patient_influence
from cardiobench.stats.paired import MeanDifferences, comparable_labels, mean_difference, variance_over_patients
from cardiobench.tasks.answers import TableAnswers


@dataclass(frozen=True)
class Ranking:
    """Models under one protocol, compared by the mean of one metric over the tasks of a table.

    Attributes:
        protocol: Protocol, or the condition for predictions from elsewhere.
        tasks: Tasks of the table; see `pairs.table_tasks`.
        number: The metric.
        unit: Unit of the labels; empty for classes.
        names: Models with a place, in alphabetical order.
        scores: Mapping from model to its mean score over the tasks of the table that it answered.
        differences: Differences of the models with a place; each pair over the tasks that both answered.
        standings: Places of the models.
        references: Mapping from reference to its mean over the same tasks; it has no place.
        lacking: Mapping from model to the tasks of the table that it did not answer; complete models are left out.
        generated: Whether the recordings are phantoms or synthetic twins.
        patients: Number of patients.
    """

    protocol: str
    tasks: tuple[str, ...]
    number: Number
    unit: str
    names: tuple[str, ...]
    scores: Mapping[str, float]
    differences: MeanDifferences
    standings: Standings
    references: Mapping[str, float] = field(default_factory=dict)
    lacking: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    generated: bool = False
    patients: int = 0

    @property
    def places(self) -> tuple[Place, ...]:
        """The models with a place, the best first."""
        return self.standings.places

    @property
    def unplaced(self) -> tuple[str, ...]:
        """Models that lack too many tasks for a place, in alphabetical order."""
        return tuple(sorted(set(self.scores) - set(self.names)))

    def error(self, one: str, other: str) -> float:
        """Return the standard error of the difference of two models."""
        return float(self.differences.se[self.names.index(one), self.names.index(other)])


@dataclass(frozen=True)
class TaskScore:
    """One model on one task.

    Attributes:
        score: Value of the metric that ranks models.
        dataset: Dataset of the task; patients of different datasets differ.
        patients: Patients, P.
        moved: Derivative of the score with respect to the weight of each patient, (P,).
        without: Change of the score without each patient, (P,).
        rows: Number of rows of each patient, (P,).
        freedom: Degrees of freedom.
        refits: What varies between the refits, with their draws and scores by the key of the metric; None if they are not
            known.
    """

    score: float
    dataset: str
    patients: Sequence[str]
    moved: np.ndarray
    without: np.ndarray
    rows: np.ndarray
    freedom: float
    refits: Refits | None = None

    @cached_property
    def size(self) -> float:
        """Sum of the squares of `moved`."""
        return float(np.square(self.moved).sum())


Scores = Mapping[str, Mapping[str, TaskScore]]
"""Model -> task -> its score."""
Answers = Mapping[str, TableAnswers]
Block = dict[str, Answers]
"""Task -> model -> its predictions, for tasks with one metric and unit."""


def rank_models(
    contests: Mapping[Contest, Answers],
    beside: Mapping[Contest, Answers] | None = None,
    *,
    fixed: Sequence[Collection[str]] = (),
) -> list[Ranking]:
    """Rank models by the mean over tasks, for each protocol, metric and set of tasks.

    Different metrics are not averaged. Patients shared by several tasks count once, with their influence on all of
    them. Missing answers count as wrong. All pairs of a ranking are corrected together.

    Args:
        contests: Contest (task, protocol) -> model -> its predictions for the same units.
        beside: Contest -> reference -> its predictions for the same units.
        fixed: Sets of tasks of a suite, or given by the user, each with one metric; see `pairs.table_tasks`.

    Returns:
        The rankings with at least two places.
    """
    rankings = []
    for (protocol, metric, unit), block in _blocks(contests).items():
        scores = _read_scores(block, metric)
        tables = [tasks for tasks in fixed if block.keys() & set(tasks)]
        for tasks in table_tasks({name: frozenset(of_model) for name, of_model in scores.items()}, tables):
            found = rank_scores(protocol, metric, unit, tasks, scores)
            if len(found.names) > 1:
                rankings.append(replace(found, references=_references(tasks, protocol, metric, beside or {})))
    return rankings


def rank_together(contests: Mapping[Contest, Answers]) -> tuple[Standings | None, list[Ranking]]:
    """Rank models that answered the same tasks, with the pairs of all metrics corrected together.

    Args:
        contests: Contest (task, protocol) -> model -> its predictions; all contests have the same models.

    Returns:
        The places over all metrics, None for a single model; and a ranking for each metric with these places.
    """
    found = []
    for (protocol, metric, unit), block in _blocks(contests).items():
        ranking = rank_scores(protocol, metric, unit, tuple(sorted(block)), _read_scores(block, metric))
        if len(ranking.names) > 1:
            found.append(ranking)
    if not found:
        return None, []
    first = found[0]
    shown = np.array([first.scores[name] for name in first.names])
    directions = [one.number.higher_is_better for one in found]
    standings = decide_pairs(first.names, shown, [one.differences for one in found], directions)
    return standings, [replace(one, standings=standings) for one in found]


def _blocks(contests: Mapping[Contest, Answers]) -> dict[tuple[str, Metric, str], Block]:
    """Group contests by protocol, metric and unit.

    A task on which some models have no probabilities is in two groups if its metric needs them: that of the metric has
    the other models, and that of a metric of decisions has all of them.
    """
    blocks: dict[tuple[str, str, str], Block] = {}
    metrics: dict[str, Metric] = {}
    for (task, protocol), models in contests.items():
        if not models:
            continue
        unit = next(iter(models.values())).task.unit
        own = {name: _metric([answers]) for name, answers in models.items()}
        shared = _metric(list(models.values()))
        for key, metric in {one.primary_key: one for one in (*own.values(), shared)}.items():
            taken = {name: one for name, one in models.items() if key in (shared.primary_key, own[name].primary_key)}
            metrics.setdefault(key, metric)
            blocks.setdefault((protocol, key, unit), {})[task] = taken
    return {(protocol, metrics[key], unit): block for (protocol, key, unit), block in blocks.items()}


def _metric(several: Sequence[TableAnswers]) -> Metric:
    """Return the metric for comparing several predictions for one task."""
    task = several[0].task
    return task.rules.compared(load_metric(task.metrics[0]), [answers.sample() for answers in several])


def _read_scores(block: Block, metric: Metric) -> Scores:
    scores: dict[str, dict[str, TaskScore]] = {}
    for task, models in block.items():
        for name, answers in models.items():
            scores.setdefault(name, {})[task] = _score(answers, metric)
    return dict(sorted(scores.items()))


def _score(answers: TableAnswers, metric: Metric) -> TaskScore:
    answers = fill_missing(answers, worst=True)
    sample, classes = answers.sample(), len(answers.task.classes)
    found = score_task(metric, sample, answers.patients, classes, answers.task.dataset)
    if answers.refits is None or not answers.refits.vary:  # Equal answers are not those of other draws.
        return found
    chosen = comparable_labels(sample.y_true, Clusters.of(answers.patients)) if sample.multilabel else np.zeros(0, bool)
    scores, own = refit_scores(answers, metric, chosen), answers.refits
    return replace(found, refits=Refits(own.varies, own.seed, own.draws, len(scores), {metric.primary_key: scores}))


def score_task(
    metric: Metric, sample: ScoringInput, patients: Sequence[str] | np.ndarray, classes: int, dataset: str
) -> TaskScore:
    """Score the rows of one model on one task.

    Args:
        metric: Metric whose primary number is the score.
        sample: Rows.
        patients: Patient of each row.
        classes: Number of classes of the task; 0 for numbers.
        dataset: Dataset of the task.
    """
    clusters = Clusters.of(patients)
    key, present = metric.primary_key, sample.present_classes(classes)
    if sample.multilabel and (chosen := comparable_labels(sample.y_true, clusters)).any():
        sample, present = sample.take_classes(chosen), present[chosen]
    freedom = float(clusters.count - 1)
    if sample.multilabel:
        freedom = min(freedom, sum(clusters.count_in(column == 1) - 1 for column in sample.y_true.T))
    elif len(present):
        freedom = min(clusters.count_in(sample.y_true == code) for code in np.flatnonzero(present)) - 1
    return TaskScore(
        float(metric.value(sample)[key]),
        dataset,
        list(dict.fromkeys(patients)),
        patient_influence(metric, key, sample, clusters, present),
        patient_changes(metric, key, sample, clusters, present),
        clusters.rows,
        max(freedom, 1.0),
    )


def rank_scores(protocol: str, metric: Metric, unit: str, tasks: tuple[str, ...], scores: Scores) -> Ranking:
    """Compare the models that answered enough of the tasks of a table.

    Args:
        protocol: Name of the protocol.
        metric: Metric of the scores.
        unit: Unit of the labels.
        tasks: Tasks of the table.
        scores: Scores of the models on these and other tasks.
    """
    answered = {name: [task for task in tasks if task in of_model] for name, of_model in scores.items()}
    answered = {name: its for name, its in answered.items() if its}
    names = tuple(name for name, its in answered.items() if is_complete(its, tasks))
    means = {name: float(np.mean([scores[name][task].score for task in its])) for name, its in answered.items()}
    found = _differences([scores[name] for name in names], tasks)
    shown = np.array([means[name] for name in names])
    patients = {(one.dataset, who) for name in names for task in answered[name] for one in [scores[name][task]] for who in one.patients}  # fmt: skip
    return Ranking(
        protocol,
        tasks,
        metric.primary,
        unit,
        names,
        means,
        found,
        decide_pairs(names, shown, [found], [metric.higher_is_better]),
        lacking={name: tuple(t for t in tasks if t not in its) for name, its in answered.items() if len(its) < len(tasks)},
        patients=len(patients),
    )  # fmt: skip


def _differences(models: Sequence[Mapping[str, TaskScore]], tasks: Sequence[str]) -> MeanDifferences:
    """Compute the differences of all pairs, each over the tasks that both models answered."""
    count = len(models)
    difference, se, freedom = (np.full((count, count), np.nan) for _ in range(3))
    answers_only = np.zeros((count, count), dtype=bool)
    coded = _code_patients(models, tasks)
    for one, other in combinations(range(count), 2):
        common = [task for task in tasks if task in coded[one] and task in coded[other]]
        if not common:
            continue
        found = _difference([coded[one][task] for task in common], [coded[other][task] for task in common])
        difference[one, other], difference[other, one] = found[0], -found[0]
        se[one, other] = se[other, one] = found[1]
        freedom[one, other] = freedom[other, one] = found[2]
        answers_only[one, other] = answers_only[other, one] = found[3]
    return MeanDifferences(difference, se, freedom, answers_only)


Coded = tuple[TaskScore, npt.NDArray[np.int64]]
"""Score of a model on a task, and a code of each of its patients, (P,), which is the same in all tasks of a dataset."""


def _code_patients(models: Sequence[Mapping[str, TaskScore]], tasks: Sequence[str]) -> list[dict[str, Coded]]:
    """Replace the names of patients by codes once, because each model is compared with all others."""
    known: dict[str, dict[str, int]] = {}
    coded: list[dict[str, Coded]] = []
    for scores in models:
        coded.append({})
        for task in tasks:
            if one := scores.get(task):
                codes = known.setdefault(one.dataset, {})
                coded[-1][task] = one, np.array([codes.setdefault(who, len(codes)) for who in one.patients], dtype=int)
    return coded


def _difference(first: Sequence[Coded], second: Sequence[Coded]) -> tuple[float, float, float, bool]:
    """Return the difference of two means over the same tasks, its standard error, degrees of freedom, and `answers_only`."""
    by_dataset: dict[str, list[tuple[Coded, Coded]]] = {}
    for pair in zip(first, second, strict=True):
        by_dataset.setdefault(pair[0][0].dataset, []).append(pair)
    parts, many = [], 0
    for pairs in by_dataset.values():
        patients = list(dict.fromkeys(np.concatenate([codes for (_, codes), _ in pairs]).tolist()))
        places = np.zeros(max(patients) + 1, dtype=int)
        places[patients] = np.arange(len(patients))
        moved, without, rows = np.zeros(len(patients)), np.zeros(len(patients)), np.zeros(len(patients), dtype=np.int64)
        for (one, codes), (other, others) in pairs:
            of_one, of_other = places[codes], places[others]
            rows[of_one] += one.rows
            for target, values, removed in ((moved, one.moved, other.moved), (without, one.without, other.without)):
                target[of_one] += values / len(first)
                target[of_other] -= removed / len(first)
        total = sum(one.size for pair in pairs for one, _ in pair) / len(first) ** 2
        # Rounding leaves a small variance for two equal sets of answers.
        variance = variance_over_patients(moved, without, rows) if (moved**2).sum() > 1e-12 * total else 0.0
        parts.append((variance, min(one.freedom for pair in pairs for one, _ in pair)))
        many += len(patients)
    trained = variation_of_means([one.refits for one, _ in first], [one.refits for one, _ in second])
    if trained.refits > 1 and trained.spread > 0:
        parts.append((trained.spread**2, trained.refits - 1.0))
    se, freedom = mean_difference(parts)
    means = (float(np.mean([one.score for one, _ in each])) for each in (first, second))
    return next(means) - next(means), se, freedom if many >= MIN_PATIENTS else np.nan, trained.covers == ANSWERS


def _references(
    tasks: Sequence[str], protocol: str, metric: Metric, beside: Mapping[Contest, Answers]
) -> dict[str, float]:
    """Return the mean of each reference that answered all tasks in the form that the metric needs."""
    of_tasks = [beside.get((task, protocol), {}) for task in tasks]
    names = set.intersection(*(set(one) for one in of_tasks))
    found = {}
    for name in sorted(names):
        answers = [one[name] for one in of_tasks]
        if metric.needs_probabilities and any(_metric([one]).primary_key != metric.primary_key for one in answers):
            continue
        found[name] = float(np.mean([_score(one, metric).score for one in answers]))
    return found
