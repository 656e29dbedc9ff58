"""Simulate verdicts on test sets with known truth: noise, and models that are good, weak, reversed or badly cut."""

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
from scipy import stats

from benchmarks.validity.simulated import Guarantee, judged, noise, sampler
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.protocols.cut import rate_cut
from cardiobench.results.verdict import Verdict
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler
from cardiobench.tasks.classes import most_probable

Test = Callable[[np.random.Generator, int], tuple[str, Sampler]]
"""Function of generator and seed that returns metric and test set."""
TEN, FIVE, EQUAL = np.array([0.82, *[0.02] * 9]), np.array([0.52, 0.2, 0.14, 0.1, 0.04]), np.full(10, 0.1)
THREE, RARE = np.array([0.7, 0.2, 0.1]), np.array([0.5, 0.3, 0.12, 0.04, 0.04])
SHOWN = {
    "above": Verdict.ABOVE, "informed": Verdict.INFORMED, "nothing": Verdict.NOTHING, "reversed": Verdict.REVERSED,
    "few": Verdict.FEW,
}  # fmt: skip


def classes(shares: np.ndarray, patients: int, known: float) -> Test:
    """Simulate predictions that are correct with a given probability, and otherwise drawn at the class rates."""

    def make(rng: np.random.Generator, seed: int) -> tuple[str, Sampler]:
        counts = np.round(shares * patients).astype(int)
        truth = np.repeat(np.arange(len(shares)), counts)
        guess = rng.choice(len(shares), len(truth), p=shares)
        answer = np.where(rng.random(len(truth)) < known, truth, guess)
        return "f1_macro", sampler(truth, answer, np.arange(len(truth)), seed, len(shares))

    return make


def repeated(shares: np.ndarray, patients: int, *, stays: bool) -> Test:
    """Simulate random predictions at the class rates on five rows per patient with one class; predictions are constant or vary."""

    def make(rng: np.random.Generator, seed: int) -> tuple[str, Sampler]:
        who = np.repeat(np.arange(patients), 5)
        truth = rng.choice(len(shares), patients, p=shares)[who]
        answer = (
            rng.choice(len(shares), patients, p=shares)[who] if stays else rng.choice(len(shares), len(who), p=shares)
        )
        return "f1_macro", sampler(truth, answer, who, seed, len(shares))

    return make


def weighted(shares: np.ndarray, patients: int, gain: float, validation: int) -> Test:
    """Simulate probabilities of several classes, cut at the class rates of validation patients; a gain of 0 is random."""
    count = len(shares)

    def drawn(rng: np.random.Generator, number: int) -> tuple[np.ndarray, np.ndarray]:
        truth, size = rng.choice(count, number, p=shares), gain or 0.7
        seen = truth if gain else rng.permutation(truth)
        odds = shares * np.exp(size * (rng.normal(size=(number, count)) + size * np.eye(count)[seen]))
        return truth, odds / odds.sum(axis=1, keepdims=True)

    def make(rng: np.random.Generator, seed: int) -> tuple[str, Sampler]:
        (truth, probabilities), (held, of_held) = drawn(rng, patients), drawn(rng, validation)
        answer = most_probable(probabilities * rate_cut(of_held, held))
        sample, present = ScoringInput(truth, answer, probabilities), np.bincount(truth, minlength=count) > 0
        return "f1_macro", Sampler(sample, Clusters.of(np.arange(patients)), present, 499, seed)

    return make


def unequal(sizes: Callable[[np.random.Generator], np.ndarray]) -> Test:
    """Simulate random predictions of patients with unequal numbers of rows; predictions and labels are constant within patients."""

    def make(rng: np.random.Generator, seed: int) -> tuple[str, Sampler]:
        rows = sizes(rng)
        who = np.repeat(np.arange(len(rows)), rows)
        truth, answer = ((rng.random(len(rows)) < 0.3).astype(int)[who] for _ in range(2))
        return "f1_macro", sampler(truth, answer, who, seed)

    return make


def ranked(auroc: float, patients: int, ill: float, validation: int = 0, *, swapped: bool = False) -> Test:
    """Simulate calibrated probabilities, cut at one half or at the prevalence in validation patients.

    Args:
        auroc: AUROC; .5 gives probabilities that vary without information.
        patients: Number of test patients.
        ill: Share of ill patients.
        validation: Number of validation patients; 0 for a cut at one half.
        swapped: Whether the two classes are swapped in the predictions.
    """
    shift = np.sqrt(2) * stats.norm.ppf(auroc)

    def drawn(rng: np.random.Generator, truth: np.ndarray) -> np.ndarray:
        odds = shift * (rng.normal(size=len(truth)) + shift * (truth - 0.5)) + np.log(ill / (1 - ill))
        if auroc == 0.5:
            odds = np.log(ill / (1 - ill)) + 0.5 * rng.normal(size=len(truth))
        positive = 1 / (1 + np.exp(-odds))
        return np.stack([1 - positive, positive], axis=1)

    def make(rng: np.random.Generator, seed: int) -> tuple[str, Sampler]:
        truth = np.repeat([0, 1], (patients - round(ill * patients), round(ill * patients)))
        probabilities, weights = drawn(rng, truth), np.ones(2)
        if validation:
            held = (rng.random(validation) < ill).astype(int)
            weights = rate_cut(drawn(rng, held), held)
        if swapped:
            probabilities = probabilities[:, ::-1]
        sample = ScoringInput(truth, most_probable(probabilities * weights), probabilities)
        return "f1_macro", Sampler(sample, Clusters.of(np.arange(patients)), np.array([True, True]), 499, seed)

    return make


def fractions(patients: int, r: float, shift: float) -> Test:
    """Simulate ejection fractions predicted with a correlation and a constant negative bias."""

    def make(rng: np.random.Generator, seed: int) -> tuple[str, Sampler]:
        truth = rng.normal(55, 10, patients)
        answer = 55 + r * (truth - 55) + rng.normal(0, 10 * np.sqrt(1 - r**2), patients) - shift
        return "mae", sampler(truth, answer, np.arange(patients), seed, 0)

    return make


CASES: dict[str, tuple[Test, str, float]] = {  # Name -> test set, word, its smallest share in % (below 0: its largest)
    "coin, one patient has 400 of 500 rows": (unequal(lambda rng: np.array([400, *[1] * 100])), "few", 99),
    "coin, 120 patients, Pareto .8": (
        unequal(lambda rng: np.minimum(1 + rng.pareto(0.8, 120), 400).astype(int)), "above", -5),
    "coin, 100 patients with 1 to 8 rows": (unequal(lambda rng: rng.integers(1, 9, 100)), "above", -5),
    "coin, 10 classes (82 %, 9 x 2 %), 300": (classes(TEN, 300, 0.0), "above", -5),
    "coin, three patients have 150 rows, 60 have one": (unequal(lambda rng: np.array([*[150] * 3, *[1] * 60])), "few", 99),
    "coin, 10 classes (82 %, 9 x 2 %), 100": (classes(TEN, 100, 0.0), "above", -5),
    "coin, 10 equal classes, 40 patients": (classes(EQUAL, 40, 0.0), "above", -5),
    "coin, 5 classes, rarest 4 %, 60 patients": (classes(FIVE, 60, 0.0), "above", -5),
    "coin, 120 patients with 5 rows each, 10 classes (82 %), one prediction per patient": (repeated(TEN, 120, stays=True), "above", -5),
    "the same, one prediction per row": (repeated(TEN, 120, stays=False), "above", -5),
    "coin, 120 patients with 5 rows each, 10 equal classes": (repeated(EQUAL, 120, stays=True), "above", -5),
    "coin, 60 patients with 5 rows each, 5 classes": (repeated(FIVE, 60, stays=True), "above", -5),
    "10 classes (82 %, 9 x 2 %), 300 patients: 95 % correct": (classes(TEN, 300, 0.85), "above", 95),
    "the same: knows 30 % of the labels": (classes(TEN, 300, 0.3), "above", 95),
    "5 classes, rarest 4 %, 60 patients: knows 50 %": (classes(FIVE, 60, 0.5), "above", 95),
    "the same, knows 25 %": (classes(FIVE, 60, 0.25), "above", 70),
    "10 equal classes, 40 patients: knows 20 %": (classes(EQUAL, 40, 0.2), "above", 70),
    "labels reversed, AUROC .8, 100 patients": (ranked(0.8, 100, 0.5, swapped=True), "reversed", 95),
    "the same, AUROC .7": (ranked(0.7, 100, 0.5, swapped=True), "reversed", 85),
    "calibrated noise, 300 patients, 30 % ill": (ranked(0.5, 300, 0.3), "reversed", -1),
    "the same, rate cut on 50 validation patients": (ranked(0.5, 300, 0.3, 50), "above", -5),
    "the same, rate cut on 300 validation patients": (ranked(0.5, 300, 0.3, 300), "above", -5),
    "calibrated noise, 300 patients, 10 % ill, rate cut on 50": (ranked(0.5, 300, 0.1, 50), "above", -5),
    "calibrated noise, 100 patients, 30 % ill, rate cut on 50": (ranked(0.5, 100, 0.3, 50), "above", -5),
    "3 classes (70, 20, 10 %), 150 patients, coin, rate cut on 100": (weighted(THREE, 150, 0.0, 100), "above", -5),
    "5 classes, rarest 4 %, 150 patients, coin, rate cut on 100": (weighted(RARE, 150, 0.0, 100), "above", -5),
    "3 classes (70, 20, 10 %), 150 patients, weak model, rate cut on 100": (weighted(THREE, 150, 0.5, 100), "above", 70),
    "5 classes, rarest 4 %, 150 patients, weak model, rate cut on 100": (weighted(RARE, 150, 0.5, 100), "above", 70),
    "AUROC .7, 300 patients, 10 % ill, rate cut on 50": (ranked(0.7, 300, 0.1, 50), "above", 65),
    "AUROC .65, 100 patients, 30 % ill, rate cut on 300": (ranked(0.65, 100, 0.3, 300), "above", 35),
    "AUROC .8, 100 patients, 30 % ill, rate cut on 50": (ranked(0.8, 100, 0.3, 50), "above", 95),
    "AUROC .7, 50 patients, 50 % ill, rate cut on 50": (ranked(0.7, 50, 0.5, 50), "above", 40),
    "AUROC .6, 300 patients, 30 % ill, cut at one half": (ranked(0.6, 300, 0.3), "informed", 70),
    "AUROC .65, the same": (ranked(0.65, 300, 0.3), "informed", 80),
    "AUROC .65, rate cut on 50 validation patients": (ranked(0.65, 300, 0.3, 50), "above", 80),
    "AUROC .65, rate cut on 300 validation patients": (ranked(0.65, 300, 0.3, 300), "above", 80),
    "EF: noise, 30 points too low, 200 patients": (fractions(200, 0.0, 30), "reversed", -1),
    "EF: r = .8, 20 points too low, 200 patients": (fractions(200, 0.8, 20), "informed", 95),
    "EF: mirrored, r = -.7, 30": (fractions(30, -0.7, 0), "reversed", 65),
    "EF: mirrored, r = -.7, 200": (fractions(200, -0.7, 0), "reversed", 95),
}  # fmt: skip


def words(repetitions: int) -> Iterator[Guarantee]:
    """Print how often each verdict occurs."""
    print(f"\n| test set | {' | '.join(SHOWN)} |\n|---|{'---|' * len(SHOWN)}")
    for name, (make, word, limit) in CASES.items():
        rng, found = np.random.default_rng(2), Counter()
        for seed in range(repetitions):
            found[judged(*make(rng, seed)).word] += 1
        shares = {one: 100 * found[verdict] / repetitions for one, verdict in SHOWN.items()}
        print(f"| {name} | {' | '.join(f'{share:.0f}' for share in shares.values())} |", flush=True)
        share, error = shares[word], noise(abs(limit), repetitions)
        yield f"{word}: {name}", share if limit < 0 else -share, error - limit
