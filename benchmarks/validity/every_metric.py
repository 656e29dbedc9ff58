"""Simulate the coverage of every number of every report, by patients."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from scipy import special, stats

from benchmarks.validity.simulated import DRAWS, Guarantee, noise
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler, estimate_metrics

Simulate = Callable[[np.random.Generator, int], tuple[ScoringInput, np.ndarray]]


def two_classes(ill: float, shift: float, repeated: bool) -> Simulate:
    """Return overconfident probabilities of a binormal model; with `repeated`, patients have 1 to 5 similar rows."""

    def make(rng: np.random.Generator, people: int) -> tuple[ScoringInput, np.ndarray]:
        who = np.repeat(np.arange(people), rng.integers(1, 6, people) if repeated else 1)
        truth = (rng.random(people) < ill)[who].astype(int)
        noise_ = (rng.normal(size=people)[who] + rng.normal(size=len(who))) / np.sqrt(2)
        logit = shift * (noise_ + shift * truth - shift / 2) + np.log(ill / (1 - ill))
        share = special.expit(1.5 * logit)
        return ScoringInput(truth, (share >= 0.5).astype(int), np.stack([1 - share, share], axis=1)), who

    return make


def four_classes(repeated: bool, strength: float = 1.3) -> Simulate:
    """Return probabilities of four classes of 40, 30, 20 and 10 %; with strength 3, the model is nearly always right."""

    def make(rng: np.random.Generator, people: int) -> tuple[ScoringInput, np.ndarray]:
        who = np.repeat(np.arange(people), rng.integers(1, 6, people) if repeated else 1)
        truth = rng.choice(4, people, p=[0.4, 0.3, 0.2, 0.1])[who]
        logits = (
            0.7 * (rng.normal(size=(people, 4))[who] + rng.normal(size=(len(who), 4))) + strength * np.eye(4)[truth]
        )
        table = special.softmax(1.3 * logits, axis=1)
        return ScoringInput(truth, table.argmax(axis=1), table), who

    return make


def several_labels(repeated: bool) -> Simulate:
    """Return scores of AUROC .9 for five labels with 10 to 30 % positives; labels and scores correlate within a patient."""
    shares, shift = np.array([0.3, 0.2, 0.1, 0.1, 0.1]), np.sqrt(2) * stats.norm.ppf(0.9)

    def shared(rng: np.random.Generator, people: int) -> np.ndarray:
        return np.sqrt(0.5) * (rng.normal(size=(people, 1)) + rng.normal(size=(people, len(shares))))

    def make(rng: np.random.Generator, people: int) -> tuple[ScoringInput, np.ndarray]:
        who = np.repeat(np.arange(people), rng.integers(1, 6, people) if repeated else 1)
        truth = (stats.norm.cdf(shared(rng, people)) < shares)[who].astype(float)
        noise_ = np.sqrt(0.5) * (shared(rng, people)[who] + rng.normal(size=truth.shape))
        return ScoringInput(truth, noise_ + shift * truth), who

    return make


def fractions(r: float, repeated: bool) -> Simulate:
    """Return ejection fractions, and predictions with a slope of r towards the mean and a bias of one point."""

    def make(rng: np.random.Generator, people: int) -> tuple[ScoringInput, np.ndarray]:
        who = np.repeat(np.arange(people), rng.integers(1, 6, people) if repeated else 1)
        truth = np.clip(rng.normal(55, 12, people), 10, 85)[who] + 2 * rng.normal(size=len(who))
        error = 0.7 * (rng.normal(size=people)[who] + rng.normal(size=len(who)))
        return ScoringInput(truth, 56 + r * (truth - 55) + 12 * np.sqrt(r * (1 - r)) * error), who

    return make


EVERY_METRIC: dict[str, tuple[tuple[Simulate, ...], tuple[str, ...], int, tuple[int, ...]]] = {
    "two classes": (
        tuple(
            two_classes(ill, shift, repeated) for ill in (0.3, 0.5) for shift in (1, 2) for repeated in (False, True)
        ),
        ("f1_macro", "classification_report", "calibration_report"),
        2,
        (50, 120, 400),
    ),
    "four classes, the rarest 10 %": (
        tuple(four_classes(repeated, strength) for strength in (1.3, 3) for repeated in (False, True)),
        ("f1_macro", "classification_report"),
        4,
        (50, 120, 400),
    ),
    "five labels": ((several_labels(False), several_labels(True)), ("auroc_macro",), 5, (50, 120, 400)),
    "ejection fraction": (
        tuple(fractions(r, repeated) for r in (0.3, 0.7, 0.95) for repeated in (False, True)),
        ("mae", "regression_report", "ejection_fraction_report"),
        0,
        (20, 50, 200),
    ),
}


def every_metric(repetitions: int) -> Iterator[Guarantee]:
    """Print the coverage of every number of every report, by patients; the class mix varies between samples."""
    print("\n| coverage of every interval | patients | worst of the simulations, each number |\n|---|---|---|")
    for name, (simulations, metrics, classes, sizes) in EVERY_METRIC.items():
        loaded = [load_metric(metric) for metric in metrics]
        targets = [_population(make, loaded) for make in simulations]
        for people in sizes:
            worst: dict[str, float] = {}
            for make, target in zip(simulations, targets, strict=True):
                for key, share in _covered_keys(make, loaded, target, classes, people, repetitions).items():
                    worst[key] = min(worst.get(key, 100), share)
            print(f"| {name} | {people} | {', '.join(f'{key} {share:.0f}' for key, share in worst.items())} |")
            for key, share in worst.items():
                yield f"coverage {key}, {name}, {people}", 90 - share, noise(90, repetitions, 3)


def _population(make: Simulate, metrics: Sequence[Metric]) -> dict[str, float]:
    """Return every number of a very large sample."""
    large, _ = make(np.random.default_rng(99), 200_000)
    return {key: value for metric in metrics for key, value in metric.value(large).items()}


def _covered_keys(
    make: Simulate,
    metrics: Sequence[Metric],
    target: Mapping[str, float],
    classes: int,
    people: int,
    repetitions: int,
) -> dict[str, float]:
    """Return the share of intervals that contain the population value, in %."""
    rng = np.random.default_rng(0)
    hits: dict[str, list[bool]] = {}
    for seed in range(repetitions):
        sample, who = make(rng, people)
        present = sample.present_classes(classes)
        found = estimate_metrics(metrics, Sampler(sample, Clusters.of(who), present, DRAWS, seed))
        for key, estimate in found.items():
            if np.isfinite(estimate.low):
                hits.setdefault(key, []).append(estimate.low <= target[key] <= estimate.high)
    return {key: 100 * float(np.mean(values)) for key, values in hits.items()}
