"""Simulate test sets with known truth and predictions, and count the statements of the package about them."""

from collections.abc import Callable

import numpy as np
from scipy import stats

from cardiobench.metrics.load import load_metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.score_result import Judgement
from cardiobench.scoring.verdict import judge
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler, estimate_metric
from cardiobench.stats.information import information_test
from cardiobench.tasks.floors import best_uninformed
from cardiobench.tasks.scored import Evidence, Patients

TEST_SETS = {
    "TMED AS 25/94": (25, 94),
    "ASD 27/20": (27, 20),
    "PAH 31/75": (31, 75),
    "STEMI 24/26": (24, 26),
    "RWMA 44/4": (44, 4),
    "RWMA 52/4": (52, 4),
    "CD 26/26": (26, 26),
    "CD 1708/490": (1708, 490),
}
DRAWS = 499
BOTH = np.array([True, True])
Guarantee = tuple[str, float, float]
"""Name of a guarantee, measured number, and largest number for which it holds."""
Make = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray, np.ndarray]]


def sampler(truth: np.ndarray, answer: np.ndarray, patients: np.ndarray, seed: int, classes: int = 2) -> Sampler:
    """Return a test set in the form for `score`; use 0 classes for numbers."""
    present = np.bincount(truth, minlength=classes) > 0 if classes else np.zeros(0, dtype=bool)
    return Sampler(ScoringInput(truth, answer), Clusters.of(patients), present, DRAWS, seed)


def patients_of(rows: Sampler) -> Patients:
    """Return the patients of a test set as counted by its kind of task."""
    counted, clusters = Patients(rows.clusters.count, rows.clusters.effective), rows.clusters
    if not rows.classes:
        return counted
    return counted._replace(
        others=clusters.effective_in(rows.sample.y_true != np.bincount(rows.sample.y_true).argmax())
    )


def call(name: str, rows: Sampler) -> tuple[bool, bool, bool]:
    """Return whether the interval is above the floor, whether p < .05, and whether the verdict is "above the floor"."""
    verdict = judged(name, rows)
    return verdict.low > 0, verdict.p_value < 0.05, verdict.word == "above the floor"


def judged(name: str, rows: Sampler, *, out_of_fold: bool = False) -> Judgement:
    """Return the verdict on a test set by the test of its fixed predictions."""
    metric = load_metric(name)
    estimate = estimate_metric(metric, rows, [name])[name]
    floor = best_uninformed(name, rows.sample.y_true, rows.classes, metric=metric)
    information = information_test(rows.sample, rows.clusters, rows.classes, DRAWS, rows.seed)
    evidence = Evidence(estimate, floor, information, rows.clusters.count, patients_of(rows), numbers=not rows.classes)
    return judge(evidence, metric.primary, out_of_fold=out_of_fold)


def rates(make: Make, repetitions: int, name: str = "f1_macro", classes: int = 2) -> np.ndarray:
    """Return how often each of the three conditions holds, in %."""
    rng = np.random.default_rng(1)
    return 100 * np.mean([call(name, sampler(*make(rng), seed, classes)) for seed in range(repetitions)], axis=0)


def coin(counts: tuple[int, int], rate: float) -> Make:
    """Return random predictions on a test set of fixed counts."""
    truth = np.repeat([0, 1], counts)
    return lambda rng: (truth, (rng.random(len(truth)) < rate).astype(int), np.arange(len(truth)))


def binormal(counts: tuple[int, int], auroc: float, cut: str) -> Make:
    """Simulate a model of known AUROC, cut at equal error rates (`even`) or at the prevalence of class 1 (`rate`)."""
    truth, shift = np.repeat([0, 1], counts), np.sqrt(2) * stats.norm.ppf(auroc)

    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        scores, where = rng.normal(size=len(truth)) + shift * truth, shift / 2
        if cut == "rate":
            population = rng.normal(size=20000) + shift * (rng.random(20000) < counts[1] / len(truth))
            where = np.quantile(population, counts[0] / len(truth))
        return truth, (scores > where).astype(int), np.arange(len(truth))

    return make


def clustered(rate: float, stays: float, labels_stay: float = 1.0, people: int = 120) -> Make:
    """Return random predictions on patients with 1 to 12 rows, constant within a patient with probability `stays`."""

    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ill = rng.random(people) < 0.3
        who = np.repeat(np.arange(people), np.minimum(1 + rng.geometric(0.45, people), 12))
        truth = np.where(rng.random(len(who)) < labels_stay, ill[who], rng.random(len(who)) < 0.3).astype(int)
        own = (rng.random(people) < rate)[who]
        return truth, np.where(rng.random(len(who)) < stays, own, rng.random(len(who)) < rate).astype(int), who

    return make


def numbers(n: int, r: float) -> Make:
    """Return calibrated predictions that correlate with ejection fractions by r; with 0, noise around the median."""

    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        truth = rng.normal(55, 10, n)
        answer = 55 + r**2 * (truth - 55) + rng.normal(0, max(10 * np.sqrt(r**2 - r**4), 2), n)
        return truth, answer, np.arange(n)

    return make


def noise(percent: float, repetitions: float, deviations: float = 2) -> float:
    """Return the Monte-Carlo error of a share in %, in standard deviations."""
    return deviations * float(np.sqrt(percent * (100 - percent) / repetitions))
