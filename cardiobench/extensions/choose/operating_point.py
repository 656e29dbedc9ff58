"""Choose the operating point of a binary task on validation patients and measure it on test patients."""

import math
from dataclasses import dataclass

import numpy as np

from cardiobench.core.config import RESAMPLES
from cardiobench.core.errors import BadPredictions
from cardiobench.stats.bootstrap import MIN_PATIENTS, percentile_interval
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.intervals import made_up_answers, smoothed_cells
from cardiobench.stats.shares import mean_of_shares
from cardiobench.tasks.answers import TableAnswers

Interval = tuple[float, float, float]
"""Estimate with lower and upper 95 % confidence bounds over test patients."""


@dataclass(frozen=True)
class OperatingPoint:
    """Test performance at one threshold.

    Attributes:
        task: Name of the binary task.
        positive: Name of the positive class.
        asked: Requested sensitivity.
        threshold: Smallest probability classified as positive, chosen on validation patients.
        reached: Sensitivity achieved on the validation units.
        positives: Number of positive validation units.
        sensitivity: Sensitivity on the test patients.
        specificity: Specificity on the test patients.
        prevalence: Prevalence in the target population; NaN if not given.
        ppv: Positive predictive value at that prevalence.
        npv: Negative predictive value at that prevalence.
        net_benefit: Net benefit at that prevalence; the threshold is the probability at which benefit and harm of
            treatment are equal.
        treat_all: Net benefit of treating everyone. Treating no one has a net benefit of 0.
    """

    task: str
    positive: str
    asked: float
    threshold: float
    reached: float
    positives: int
    sensitivity: Interval
    specificity: Interval
    prevalence: float
    ppv: Interval
    npv: Interval
    net_benefit: Interval
    treat_all: float


def choose_threshold(scores: np.ndarray, truth: np.ndarray, sensitivity: float) -> float:
    """Return the largest threshold with at least the requested sensitivity.

    Args:
        scores: Probability of the positive class, (n,).
        truth: Binary labels, (n,).
        sensitivity: Requested sensitivity, above 0 and at most 1.

    Raises:
        BadPredictions: There are no positive units.
    """
    positives = np.sort(scores[truth == 1])[::-1]
    if not len(positives):
        raise BadPredictions(
            "no validation unit has the class, so no threshold can be chosen. Leave --sensitivity out."
        )
    # Round first, so that 0.9 of 10 is 9 despite the binary representation of 0.9.
    return float(positives[math.ceil(round(sensitivity * len(positives), 9)) - 1])


def at_prevalence(
    sensitivity: np.ndarray, specificity: np.ndarray, prevalence: float, threshold: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return predictive values and net benefit at a prevalence, with the shape of the arguments.

    Sources: Bayes' rule; net benefit by A. J. Vickers and E. B. Elkin, Medical Decision Making 26 (2006), with the
    rates of both classes weighted by prevalence. Undefined values are NaN: no unit is positive, or the threshold is 1.
    """
    hit, alarm = sensitivity * prevalence, (1 - specificity) * (1 - prevalence)
    miss, rest = (1 - sensitivity) * prevalence, specificity * (1 - prevalence)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = threshold / (1 - threshold) if threshold < 1 else np.nan
        return hit / (hit + alarm), rest / (rest + miss), hit - alarm * odds


def operating_point(
    validation: TableAnswers,
    test: TableAnswers,
    sensitivity: float,
    prevalence: float = math.nan,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> OperatingPoint:
    """Choose a threshold on validation patients and measure its performance on test patients.

    Args:
        validation: Validation predictions of a model that was not fitted on these patients.
        test: Test predictions.
        sensitivity: Minimum sensitivity on the validation units.
        prevalence: Prevalence in the target population.
        resamples: Number of bootstrap resamples.
        seed: Random seed of the bootstrap.

    Raises:
        BadPredictions: Probabilities or one of the two classes are missing.
    """
    task = test.task
    (held, held_truth), (scores, truth) = _scores(validation), _scores(test)
    try:
        threshold = choose_threshold(held, held_truth, sensitivity)
    except BadPredictions as error:
        raise BadPredictions(f"{task.name}: {error}") from None
    if len(np.unique(truth)) < 2:
        raise BadPredictions(
            f"{task.name}: the test units have one class only, so no operating point can be measured. Leave --sensitivity out."
        )
    answer, clusters = (scores >= threshold).astype(np.int64), Clusters.of(test.patients)
    hits = np.array([np.mean(answer[truth == 1]), np.mean(1 - answer[truth == 0])])
    ends = [_share(answer == label, truth == label, clusters) for label in (1, 0)]
    cells, _ = smoothed_cells(truth, answer, clusters, made_up_answers(truth, 2), resamples, seed)
    drawn = cells[:, 1, 1] / cells[:, 1].sum(axis=1), cells[:, 0, 0] / cells[:, 0].sum(axis=1)
    values = at_prevalence(hits[0], hits[1], prevalence, threshold)
    draws = at_prevalence(*drawn, prevalence, threshold)
    few = clusters.count < MIN_PATIENTS
    ppv, npv, benefit = (
        (float(value), *((math.nan, math.nan) if few else percentile_interval(many)))
        for value, many in zip(values, draws, strict=True)
    )
    everybody = at_prevalence(np.ones(1), np.zeros(1), prevalence, threshold)[2]
    return OperatingPoint(
        task=task.name,
        positive=task.classes[1],
        asked=sensitivity,
        threshold=threshold,
        reached=float(np.mean(held[held_truth == 1] >= threshold)),
        positives=int(held_truth.sum()),
        sensitivity=(float(hits[0]), *ends[0]),
        specificity=(float(hits[1]), *ends[1]),
        prevalence=prevalence,
        ppv=ppv,
        npv=npv,
        net_benefit=benefit,
        treat_all=float(everybody[0]),
    )


def _scores(answers: TableAnswers) -> tuple[np.ndarray, np.ndarray]:
    """Return positive-class probabilities and true classes of all units."""
    sample = answers.sample()
    if sample.probabilities is None:
        raise BadPredictions(
            f"{answers.source} has no probabilities for {answers.task.name}, so no threshold can be chosen."
        )
    return sample.probabilities[:, 1], sample.y_true


def _share(hits: np.ndarray, rows: np.ndarray, clusters: Clusters) -> tuple[float, float]:
    if clusters.count < MIN_PATIENTS:
        return math.nan, math.nan
    found = mean_of_shares((hits & rows)[:, None], rows[:, None], "wilson", clusters)
    return found.low, found.high
