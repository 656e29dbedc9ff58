"""Scores of refits: the same model fitted to other draws of its training data, on the same test rows."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from cardiobench.metrics.load import load_metric
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.refits import NO_TRAINING, TRAINING_PATIENTS, TRAINING_SEEDS, Refits
from cardiobench.stats.paired import Difference, with_refits
from cardiobench.stats.variability import BOTH, SEEDS, TEST, mean_over_tasks, paired_refit_spread
from cardiobench.tasks.answers import RefitAnswers, TableAnswers

ANSWERS = "answers"
"""What a comparison covers if a model that trains has no refits, or the two have other draws: two sets of answers, and
nothing about the models that gave them."""


class Variation(NamedTuple):
    """Variation of the difference of two models beyond the test patients.

    Attributes:
        covers: Sources of variation: "test patients" for models that do not train, "test and training patients", "test
            patients and seeds of the training", or "answers" if the variation of the training is unknown.
        spread: Standard deviation of the difference; 0 for models that do not train, and if it is unknown.
        refits: Number of refits behind it.
    """

    covers: str
    spread: float = 0.0
    refits: int = 0

    def add_to(self, found: Difference, difference: float, patients: int) -> Difference:
        """Return a difference over test patients with this variation added."""
        return with_refits(found, difference, self.spread, self.refits, patients) if self.refits else found


def same_draws(one: Refits | RefitAnswers | None, other: Refits | RefitAnswers | None) -> str:
    """Return what varies between the refits of two models with the same draws; empty if refits are missing or differ.

    A model that does not train has the same answers for all draws.
    """
    if one is None or other is None:
        return ""
    if NO_TRAINING in (one.varies, other.varies):
        return other.varies if one.varies == NO_TRAINING else one.varies
    return one.varies if (one.varies, one.draws) == (other.varies, other.draws) else ""


def variation(varies: str, scores_a: Sequence[float], scores_b: Sequence[float]) -> Variation:
    """Return the variation of a difference over refits with the same draws.

    Args:
        varies: Source of variation (`same_draws`).
        scores_a: Score of each refit of one model, (R,); empty for a model that does not train.
        scores_b: The same for the other model.
    """
    if varies == NO_TRAINING:
        return Variation(TEST)
    count = max(len(scores_a), len(scores_b))
    if not varies or not {len(scores_a), len(scores_b)} <= {0, count}:
        return Variation(ANSWERS)
    spread = paired_refit_spread(scores_a or [0.0] * count, scores_b or [0.0] * count)
    if not spread >= 0:
        return Variation(ANSWERS)
    return Variation(BOTH if varies == TRAINING_PATIENTS else SEEDS, spread, count)


def on_labels(sample: ScoringInput, labels: np.ndarray) -> ScoringInput:
    """Return rows with the compared labels only, given as bool (K,), or unchanged if there are none."""
    return sample.take_classes(labels) if labels.any() else sample


def refit_scores(answers: TableAnswers, metric: Metric, labels: np.ndarray) -> tuple[float, ...]:
    """Return the primary number of each refit of a set of answers, (R,), computed once per set.

    Args:
        answers: Answers with refits.
        metric: Metric whose primary number is computed.
        labels: Compared labels, bool (K,); all if none is chosen.
    """
    known, key = answers.refit_scores, (metric.name, metric.primary_key, labels.tobytes())
    if key not in known:
        samples = (on_labels(refit.sample(), labels) for refit in answers.of_refits())
        known[key] = tuple(float(metric.value(sample)[metric.primary_key]) for sample in samples)
    return known[key]


def variation_of_answers(one: TableAnswers, other: TableAnswers, metric: Metric, labels: np.ndarray) -> Variation:
    """Return the variation of the difference of two models, with the score of each refit computed from its answers.

    Answers of refits that do not differ are not those of other draws, and count as missing.

    Args:
        one: Answers of one model.
        other: Answers of the other for the same units.
        metric: Metric whose primary number is compared.
        labels: Compared labels, bool (K,); all if none is chosen.
    """
    varies = same_draws(one.refits, other.refits)
    if not varies or not all(each.refits and each.refits.vary for each in (one, other)):
        return Variation(ANSWERS)
    return variation(varies, *(refit_scores(each, metric, labels) for each in (one, other)))


def variation_of_results(one: Refits | None, other: Refits | None, key: str) -> Variation:
    """Return the variation of the difference of a number of two results on one task."""
    varies = same_draws(one, other)
    if not varies or one is None or other is None:
        return Variation(ANSWERS)
    scores = [each.scores.get(key, ()) for each in (one, other)]
    if any(len(own) != each.count for own, each in zip(scores, (one, other), strict=True)):
        return Variation(ANSWERS)
    return variation(varies, *scores)


def variation_of_means(first: Sequence[Refits | None], second: Sequence[Refits | None]) -> Variation:
    """Return the variation of the difference of two means over the same tasks, for one metric.

    Refit r of every task is averaged first. A task whose models do not train adds nothing.

    Args:
        first: Refits of one model on each task, with the scores of the metric alone.
        second: Refits of the other model on the same tasks.
    """
    varies = [same_draws(one, other) for one, other in zip(first, second, strict=True)]
    if not all(varies):
        return Variation(ANSWERS)
    scores = [[next(iter(one.scores.values()), ()) if one else () for one in each] for each in (first, second)]
    trained = [number for number, one in enumerate(varies) if one != NO_TRAINING]
    if not trained:
        return Variation(TEST)
    count = max(len(each[number]) for each in scores for number in trained)
    if any(len(each[number]) not in (0, count) for each in scores for number in trained):
        return Variation(ANSWERS)
    means = [
        mean_over_tasks([each[n] or [0.0] * count for n in trained]) * len(trained) / len(varies) for each in scores
    ]
    seeds = any(varies[number] != TRAINING_PATIENTS for number in trained)
    return variation(TRAINING_SEEDS if seeds else TRAINING_PATIENTS, *(mean.tolist() for mean in means))


def ranking_scores(answers: TableAnswers) -> list[float]:
    """Return the ranking metric of each refit on the scored units; empty without refits, or with a single class."""
    return scores_of(answers.of_refits())


def scores_of(several: Iterable[TableAnswers]) -> list[float]:
    """Return the ranking metric of several answers to the same units; empty with a single class."""
    scores = []
    for answers in several:
        if answers.task.classes and answers.frame["y_true"].nunique() < 2:
            return []
        metric = load_metric(answers.task.metrics[0])
        scores.append(metric.value(answers.sample())[metric.primary_key])
    return scores
