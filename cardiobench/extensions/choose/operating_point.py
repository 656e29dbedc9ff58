"""Choose the operating point of a binary task on validation patients and measure it on test patients."""

import math
from dataclasses import dataclass

import numpy as np

from cardiobench.core.errors import BadPredictions
from cardiobench.stats.areas import share_of_rows
from cardiobench.stats.bootstrap import MIN_PATIENTS
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.intervals import exact_ends, ratio_interval
from cardiobench.tasks.answers import TableAnswers

Interval = tuple[float, float, float]
"""Estimate with lower and upper 95 % confidence bounds over test patients."""

ONE_SIDED = 0.05


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
        guarded: Whether the lower bound of the sensitivity on validation patients reaches the requested one.
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
    guarded: bool = False


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


def guarded_threshold(
    scores: np.ndarray, truth: np.ndarray, sensitivity: float, clusters: Clusters | None = None
) -> float:
    """Return the largest threshold at which the one-sided 95 % lower bound of the sensitivity reaches the requested one.

    The bound is exact (Clopper and Pearson) for one row per patient. For several rows it uses the effective number of
    patients.

    Args:
        scores: Probability of the positive class, (n,).
        truth: Binary labels, (n,).
        sensitivity: Requested sensitivity, above 0 and below 1.
        clusters: Patients of the rows; None for one row per patient.

    Raises:
        BadPredictions: There are too few positive patients for any threshold.
    """
    positives = np.sort(scores[truth == 1])[::-1]
    size = len(positives) if clusters is None else clusters.effective_in(truth == 1)
    found = np.arange(1, len(positives) + 1) / max(len(positives), 1)
    enough = [exact_ends(share, size, 1 - 2 * ONE_SIDED)[0] >= sensitivity for share in found]
    if not any(enough):
        needed = math.ceil(round(math.log(ONE_SIDED) / math.log(sensitivity), 9)) if sensitivity < 1 else math.inf
        raise BadPredictions(
            f"{size:.3g} positive validation patients: no threshold has a lower bound of {sensitivity:g}, even if it finds "
            f"all of them; at least {needed} are needed. Ask for a lower sensitivity."
        )
    return float(positives[enough.index(True)])


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
    guarded: bool = False,
) -> OperatingPoint:
    """Choose a threshold on validation patients and measure its performance on test patients.

    Args:
        validation: Validation predictions of a model that was not fitted on these patients.
        test: Test predictions.
        sensitivity: Minimum sensitivity on the validation units.
        prevalence: Prevalence in the target population.
        guarded: Whether the lower bound of the sensitivity has to reach the requested one (`guarded_threshold`).

    Raises:
        BadPredictions: Probabilities or one of the two classes are missing, or too few positive patients for a guarded
            threshold.
    """
    task = test.task
    (held, held_truth), (scores, truth) = _scores(validation), _scores(test)
    try:
        if guarded:
            threshold = guarded_threshold(held, held_truth, sensitivity, Clusters.of(validation.patients))
        else:
            threshold = choose_threshold(held, held_truth, sensitivity)
    except BadPredictions as error:
        raise BadPredictions(f"{task.name}: {error}") from None
    if len(np.unique(truth)) < 2:
        raise BadPredictions(
            f"{task.name}: the test units have one class only, so no operating point can be measured. Leave --sensitivity out."
        )
    answer, clusters = (scores >= threshold).astype(np.int64), Clusters.of(test.patients)
    found, specificity = (_share(answer == label, truth == label, clusters) for label in (1, 0))
    together = _correlation(answer, truth, clusters)
    ppv, npv, benefit = values_at_prevalence(found, specificity, prevalence, threshold, together)
    everybody = at_prevalence(np.ones(1), np.zeros(1), prevalence, threshold)[2]
    return OperatingPoint(
        task=task.name,
        positive=task.classes[1],
        asked=sensitivity,
        threshold=threshold,
        reached=float(np.mean(held[held_truth == 1] >= threshold)),
        positives=int(held_truth.sum()),
        sensitivity=found,
        specificity=specificity,
        prevalence=prevalence,
        ppv=ppv,
        npv=npv,
        net_benefit=benefit,
        treat_all=float(everybody[0]),
        guarded=guarded,
    )


def _scores(answers: TableAnswers) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities of the positive class (n,) and true classes, 0 or 1 (n,), of all units.

    Raises:
        BadPredictions: The answers have no probabilities.
    """
    sample = answers.sample()
    if sample.probabilities is None:
        raise BadPredictions(
            f"{answers.source} has no probabilities for {answers.task.name}, so no threshold can be chosen."
        )
    return sample.probabilities[:, 1], sample.y_true


def values_at_prevalence(
    sensitivity: Interval, specificity: Interval, prevalence: float, threshold: float, correlation: float = 0.0
) -> tuple[Interval, Interval, Interval]:
    """Return predictive values and net benefit at a prevalence, with intervals from those of both rates.

    The predictive values are functions of a ratio of rates (`ratio_interval`), the net benefit is a sum of them (Zou and
    Donner, Statistics in Medicine 27, 2008). See `at_prevalence` for the other arguments.

    Args:
        sensitivity: Sensitivity with its interval.
        specificity: Specificity with its interval.
        prevalence: Prevalence in the target population; NaN if not given.
        threshold: Smallest probability classified as positive.
        correlation: Correlation of both rates over patients with rows of both classes. Only one that widens an interval
            counts, because few patients may show the other by chance.
    """
    values = at_prevalence(np.array(sensitivity[0]), np.array(specificity[0]), prevalence, threshold)
    ppv, npv, benefit = (float(value) for value in values)
    if math.isnan(sensitivity[1]) or math.isnan(prevalence) or prevalence in (0, 1):
        return (ppv, math.nan, math.nan), (npv, math.nan, math.nan), (benefit, math.nan, math.nan)
    alarms, misses = _complement(specificity), _complement(sensitivity)
    together = max(correlation, 0.0)
    found = []
    for value, wrong, right, odds in (
        (ppv, alarms, sensitivity, (1 - prevalence) / prevalence),
        (npv, misses, specificity, prevalence / (1 - prevalence)),
    ):
        low, high = ratio_interval(wrong, right, -together)
        found.append((value, 1 / (1 + high * odds), 1 / (1 + low * odds)))
    weights = prevalence, (1 - prevalence) * (threshold / (1 - threshold) if threshold < 1 else math.nan)
    reaches = [
        math.sqrt(one**2 + other**2 + 2 * together * one * other)
        for one, other in (
            [
                weight * abs(rate[0] - rate[end])
                for weight, rate in zip(weights, (sensitivity, specificity), strict=True)
            ]
            for end in (1, 2)
        )
    ]
    return found[0], found[1], (benefit, benefit - reaches[0], benefit + reaches[1])


def _complement(rate: Interval) -> Interval:
    return 1 - rate[0], 1 - rate[2], 1 - rate[1]


def _correlation(answer: np.ndarray, truth: np.ndarray, clusters: Clusters) -> float:
    """Return the correlation of sensitivity and specificity over patients; 0 if none has rows of both classes."""
    moved = []
    for label in (1, 0):
        rows = truth == label
        moved.append(clusters.sum(np.where(rows, (answer == label) - np.mean(answer[rows] == label), 0.0)))
    size = math.sqrt((moved[0] ** 2).sum() * (moved[1] ** 2).sum())
    return float(moved[0] @ moved[1] / size) if size > 0 else 0.0


def _share(hits: np.ndarray, rows: np.ndarray, clusters: Clusters) -> Interval:
    share = float(hits[rows].mean())
    if clusters.count < MIN_PATIENTS:
        return share, math.nan, math.nan
    influence = np.where(rows, hits - share, 0.0) / rows.sum()
    found = share_of_rows(share, influence, rows, clusters)
    return share, found.low, found.high
