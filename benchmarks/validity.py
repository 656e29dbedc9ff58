"""Simulate what the verdicts promise: false alarms, power, coverage, gaps, comparisons, missing answers.

Every rule is run as the package runs it, on answers whose truth is known. Prints Markdown tables; fails where a promise
is not kept. One minute of one core at 300 repetitions:

    OMP_NUM_THREADS=1 python benchmarks/validity.py [REPETITIONS]
"""

import sys
from collections.abc import Callable, Iterator

import numpy as np
from scipy import special, stats

from cardiobench.scoring.bounds import completed
from cardiobench.scoring.clusters import Clusters
from cardiobench.scoring.compare import paired_difference
from cardiobench.scoring.estimates import Sampler, estimate_metric, estimate_metrics
from cardiobench.scoring.families import Family, margin
from cardiobench.scoring.floors import best_uninformed
from cardiobench.scoring.groups import gap_tests
from cardiobench.scoring.information import information_test, p_of_correlation
from cardiobench.scoring.metrics import ScoringInput, load_metric
from cardiobench.scoring.verdict import judge

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
RATES = (0.1, 0.3, 0.5, 0.7, 0.9)
DRAWS = 499
BOTH = np.array([True, True])
Make = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray, np.ndarray]]


def sampler(truth: np.ndarray, answer: np.ndarray, patients: np.ndarray, seed: int, classes: int = 2) -> Sampler:
    """Return a test set as `score` sees it; 0 classes for numbers."""
    present = np.bincount(truth, minlength=classes) > 0 if classes else np.zeros(0, dtype=bool)
    return Sampler(ScoringInput(truth, answer), Clusters.of(patients), present, DRAWS, seed)


def call(name: str, rows: Sampler) -> tuple[bool, bool, bool]:
    """Return whether the interval is above the floor, whether p < .05, and whether the verdict is "above the floor"."""
    metric = load_metric(name)
    estimate = estimate_metric(metric, rows, [name])[name]
    floor = best_uninformed(name, rows.sample.y_true, rows.classes)
    information = information_test(rows.sample, rows.clusters, rows.classes, DRAWS, rows.seed)
    verdict = judge(estimate, floor, information, None, metric.higher_is_better)
    return verdict.low > 0, information.p_value < 0.05, verdict.word == "above the floor"


def rates(make: Make, repetitions: int, name: str = "f1_macro", classes: int = 2) -> np.ndarray:
    """Return how often each of the three holds, in %."""
    rng = np.random.default_rng(1)
    return 100 * np.mean([call(name, sampler(*make(rng), seed, classes)) for seed in range(repetitions)], axis=0)


def coin(counts: tuple[int, int], rate: float) -> Make:
    """Answers by coin on a test set of fixed counts."""
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
    """Coins on patients with 1 to 12 rows; answers stay within a patient with probability `stays`."""

    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ill = rng.random(people) < 0.3
        who = np.repeat(np.arange(people), np.minimum(1 + rng.geometric(0.45, people), 12))
        truth = np.where(rng.random(len(who)) < labels_stay, ill[who], rng.random(len(who)) < 0.3).astype(int)
        own = (rng.random(people) < rate)[who]
        return truth, np.where(rng.random(len(who)) < stays, own, rng.random(len(who)) < rate).astype(int), who

    return make


def numbers(n: int, r: float) -> Make:
    """Calibrated answers of correlation r with ejection fractions; 0 is noise around the median."""

    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        truth = rng.normal(55, 10, n)
        answer = 55 + r * (truth - 55) + rng.normal(0, max(10 * np.sqrt(r**2 - r**4), 2), n)
        return truth, answer, np.arange(n)

    return make


def false_alarms(repetitions: int) -> Iterator[tuple[str, float, float]]:
    """Coins at six rates on every test set: % called above the floor, and the promise."""
    print("\n| coins, worst of six rates | interval above | p < .05 | **above the floor** |\n|---|---|---|---|")
    for name, counts in TEST_SETS.items():
        own = counts[1] / sum(counts)
        worst = np.max([rates(coin(counts, q), repetitions) for q in (*RATES, own)], axis=0)
        print(f"| {name} | {worst[0]:.1f} | {worst[1]:.1f} | {worst[2]:.1f} |")
        yield name, worst[2], 5 + noise(5, repetitions)
    cases = [clustered(q, stays, labels) for q in (0.3, 0.5) for stays in (0, 0.5, 1) for labels in (1, 0.5)]
    worst = np.max([rates(make, repetitions // 2) for make in cases], axis=0)
    print(f"| 120 patients of 1-12 rows, 12 kinds of coin | {worst[0]:.1f} | {worst[1]:.1f} | {worst[2]:.1f} |")
    yield "clusters", worst[2], 5 + noise(5, repetitions // 2)
    folds = [clustered(q, 0, 1, 300) for q in (0.3, 0.5, 0.7)]
    worst = np.max([rates(make, repetitions // 2) for make in folds], axis=0)
    print(f"| cross-validation, 300 patients out of fold | {worst[0]:.1f} | {worst[1]:.1f} | {worst[2]:.1f} |")
    yield "cross-validation", worst[2], 5 + noise(5, repetitions // 2)
    for n in (29, 150):
        found = rates(numbers(n, 0), repetitions, "mae", 0)
        print(f"| ejection fraction, noise, n = {n} | {found[0]:.1f} | {found[1]:.1f} | {found[2]:.1f} |")
        yield f"EF noise {n}", found[2], 5


EXPECTED = {  # an independent implementation, 200 repetitions: AUROC -> % above the floor, cut even / at the class rate
    "TMED AS 25/94": {0.7: (41, 68), 0.8: (95, 99)},
    "ASD 27/20": {0.7: (48, 45), 0.8: (87, 90)},
    "STEMI 24/26": {0.7: (48, 55), 0.8: (88, 87)},
    "RWMA 44/4": {0.8: (2, 31), 0.9: (30, 70)},
}
EXPECTED_REPETITIONS = 200


def power(repetitions: int) -> Iterator[tuple[str, float, float]]:
    """Models of known AUROC: % called above the floor, even / rate, not below the reference by more than noise."""
    print("\n| power, cut even / at the class rate | AUROC | above the floor |\n|---|---|---|")
    for name, levels in EXPECTED.items():
        for auroc, least in levels.items():
            found = [rates(binormal(TEST_SETS[name], auroc, cut), repetitions)[2] for cut in ("even", "rate")]
            print(f"| {name} | {auroc} | {found[0]:.0f} / {found[1]:.0f} |")
            for value, reference in zip(found, least, strict=True):
                both = 1 / (1 / repetitions + 1 / EXPECTED_REPETITIONS)
                yield f"power {name} {auroc}", reference - value, noise((value + reference) / 2, both, 3)


def coverage(repetitions: int) -> Iterator[tuple[str, float, float]]:
    """Coverage of each interval on known truth, in %, with the mean width."""
    print("\n| interval | test set | coverage (width) |\n|---|---|---|")
    for n, ill in ((48, 4), (48, 12), (26, 13), (100, 10), (119, 60), (1277, 120)):
        for sens, spec in ((0.5, 0.9), (0.25, 0.97), (0.8, 0.8), (0.9, 0.95)):
            truth = np.repeat([0, 1], (n - ill, ill))
            exact = np.array([[(n - ill) * spec, (n - ill) * (1 - spec)], [ill * (1 - sens), ill * sens]])
            target = float(load_metric("f1_macro").from_tables(exact, BOTH)["f1_macro"])

            def make(rng, truth=truth, sens=sens, spec=spec):
                right = rng.random(len(truth)) < np.where(truth == 1, sens, spec)
                return truth, np.where(right, truth, 1 - truth), np.arange(len(truth))

            yield from _covered("f1_macro", f"{n}, {ill} ill, {sens}/{spec}", make, target, repetitions)
    for n, ill in ((48, 4), (26, 13), (100, 10), (119, 60)):
        for auroc in (0.7, 0.9, 0.97):
            yield from _auroc(n, ill, auroc, repetitions)
    for n in (10, 20, 50):
        for name, draw, mean in (
            ("gamma 1.2", lambda rng, n: rng.gamma(1.2, 5, n), 6.0),
            ("half-normal", lambda rng, n: np.abs(rng.normal(0, 5, n)), 5 * np.sqrt(2 / np.pi)),
        ):
            hits = []
            for seed in range(repetitions):
                rng = np.random.default_rng(seed)
                rows = sampler(np.zeros(n), draw(rng, n), np.arange(n), seed, 0)
                found = estimate_metric(load_metric("mae"), rows)["mae"]
                hits.append((found.low <= mean <= found.high, found.high - found.low))
            yield _line("mae, log-t", f"{n} patients, {name}", hits, repetitions)


def _covered(metric: str, name: str, make: Make, target: float, repetitions: int) -> Iterator[tuple[str, float, float]]:
    rng, hits = np.random.default_rng(0), []
    for seed in range(repetitions):
        found = estimate_metric(load_metric(metric), sampler(*make(rng), seed), [metric])[metric]
        hits.append((found.low <= target <= found.high, found.high - found.low))
    yield _line("macro F1, smoothed", name, hits, repetitions)


def _auroc(n: int, ill: int, auroc: float, repetitions: int) -> Iterator[tuple[str, float, float]]:
    truth, shift = np.repeat([0, 1], (n - ill, ill)), np.sqrt(2) * stats.norm.ppf(auroc)
    metric, hits, rng = load_metric("classification_report"), [], np.random.default_rng(0)
    for seed in range(repetitions):
        share = 1 / (1 + np.exp(-(rng.normal(size=n) + shift * truth)))
        sample = ScoringInput(truth, (share > 0.5).astype(int), np.stack([1 - share, share], axis=1))
        rows = Sampler(sample, Clusters.of(np.arange(n)), BOTH, DRAWS, seed)
        found = estimate_metric(metric, rows, ["auroc"])["auroc"]
        hits.append((found.low <= auroc <= found.high, found.high - found.low))
    yield _line("AUROC, Newcombe", f"{n}, {ill} ill, AUROC {auroc}", hits, repetitions)


def _line(method: str, name: str, hits: list[tuple[bool, float]], repetitions: int) -> tuple[str, float, float]:
    share, width = np.mean(hits, axis=0)
    print(f"| {method} | {name} | {100 * share:.0f} ({width:.2f}) |")
    return f"coverage {method} {name}", 90 - 100 * share, noise(90, repetitions)


Simulate = Callable[[np.random.Generator, int], tuple[ScoringInput, np.ndarray]]


def two_classes(ill: float, shift: float, repeated: bool) -> Simulate:
    """Overconfident probabilities of a binormal model; `repeated` gives patients 1 to 5 rows that are alike."""

    def make(rng: np.random.Generator, people: int) -> tuple[ScoringInput, np.ndarray]:
        who = np.repeat(np.arange(people), rng.integers(1, 6, people) if repeated else 1)
        truth = (rng.random(people) < ill)[who].astype(int)
        noise_ = (rng.normal(size=people)[who] + rng.normal(size=len(who))) / np.sqrt(2)
        logit = shift * (noise_ + shift * truth - shift / 2) + np.log(ill / (1 - ill))
        share = special.expit(1.5 * logit)
        return ScoringInput(truth, (share >= 0.5).astype(int), np.stack([1 - share, share], axis=1)), who

    return make


def four_classes(repeated: bool, strength: float = 1.3) -> Simulate:
    """Probabilities of four classes of 40, 30, 20 and 10 %; of strength 3 a model that is nearly always right."""

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
    """Scores of AUROC .9 for five labels that 10 to 30 % have, labels and scores correlated within a patient."""
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
    """Ejection fractions with answers that shrink to the mean, of slope r, and a bias of one point."""

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
OF_THE_SAMPLE = "nmae"
"""Divided by the largest reference of the test set, so that no population has one."""


def every_metric(repetitions: int) -> Iterator[tuple[str, float, float]]:
    """Coverage of every number of every report, by patients; the class mix varies as patients do."""
    print("\n| coverage of every interval | patients | worst of the simulations, each number |\n|---|---|---|")
    for name, (simulations, metrics, classes, sizes) in EVERY_METRIC.items():
        for people in sizes:
            worst: dict[str, float] = {}
            for make in simulations:
                for key, share in _covered_keys(make, metrics, classes, people, repetitions).items():
                    worst[key] = min(worst.get(key, 100), share)
            print(f"| {name} | {people} | {', '.join(f'{key} {share:.0f}' for key, share in worst.items())} |")
            for key, share in worst.items():
                yield f"coverage {key}, {name}, {people}", 90 - share, noise(90, repetitions, 3)


def _covered_keys(
    make: Simulate, metrics: tuple[str, ...], classes: int, people: int, repetitions: int
) -> dict[str, float]:
    """Return the share of intervals that hold the number of a very large sample, in %."""
    loaded, rng = [load_metric(name) for name in metrics], np.random.default_rng(0)
    large, _ = make(np.random.default_rng(99), 200_000)
    target = {key: value for metric in loaded for key, value in metric.value(large).items()}
    hits: dict[str, list[bool]] = {}
    for seed in range(repetitions):
        sample, who = make(rng, people)
        present = sample.present_classes(classes)
        found = estimate_metrics(loaded, Sampler(sample, Clusters.of(who), present, DRAWS, seed))
        for key, estimate in found.items():
            if np.isfinite(estimate.low) and key != OF_THE_SAMPLE:
                hits.setdefault(key, []).append(estimate.low <= target[key] <= estimate.high)
    return {key: 100 * float(np.mean(values)) for key, values in hits.items()}


def gaps(repetitions: int) -> Iterator[tuple[str, float, float]]:
    """Print, for groups with and without a difference, the share of p < .05 and the mean excess of the gap."""
    print("\n| groups | p < .05 | gap, expected, excess |\n|---|---|---|")
    for name, shares, mixes, sens in (
        ("no difference, 4 groups of 300", [0.25] * 4, [0.3] * 4, [0.7] * 4),
        ("same sensitivity, 10 % and 50 % ill, 400", [0.5] * 2, [0.1, 0.5], [0.7] * 2),
        ("sensitivity .85 and .55, 400", [0.5] * 2, [0.3] * 2, [0.85, 0.55]),
    ):
        rng, found, people = np.random.default_rng(0), [], 300 if len(shares) == 4 else 400
        for seed in range(repetitions):
            group = rng.choice(len(shares), people, p=shares)
            truth = (rng.random(people) < np.array(mixes)[group]).astype(int)
            answer = np.where(truth == 1, rng.random(people) < np.array(sens)[group], rng.random(people) > 0.85).astype(
                int
            )
            rows = sampler(truth, answer, np.arange(people), seed)
            dealt = [np.flatnonzero(group == g) for g in range(len(shares))]
            (gap,) = gap_tests(load_metric("f1_macro"), "f1_macro", rows, [dealt], 199)
            found.append(
                (
                    gap["f1_macro"].p_value < 0.05,
                    *(getattr(gap["f1_macro"], k) for k in ("value", "expected", "excess")),
                )
            )
        mean = np.mean(found, axis=0)
        print(f"| {name} | {100 * mean[0]:.1f} | {mean[1]:.3f} {mean[2]:.3f} {mean[3]:+.3f} |")
        if sens[0] == sens[-1]:
            yield f"gap {name}", 100 * mean[0], 7 + noise(7, repetitions)
    rng, found = np.random.default_rng(0), []
    for seed in range(repetitions):
        group = rng.integers(0, 2, 200)
        truth = np.clip(rng.normal(60 - 12 * group, 10), 10, 80)
        answer = truth + rng.normal(0, 4 + 0.25 * (80 - truth))
        rows = sampler(truth, answer, np.arange(200), seed, 0)
        (gaps,) = gap_tests(load_metric("mae"), "mae", rows, [[np.flatnonzero(group == g) for g in (0, 1)]], 199)
        gap = gaps["mae"]
        found.append((gap.p_value < 0.05, gap.value, gap.expected, gap.excess))
    mean = np.mean(found, axis=0)
    print(
        f"| EF: errors grow as EF falls, one group sicker | {100 * mean[0]:.1f} | {mean[1]:.2f} {mean[2]:.2f} {mean[3]:+.2f} |"
    )
    yield "gap of a sicker group", 100 * mean[0], 7 + noise(7, repetitions)


def comparisons(repetitions: int) -> Iterator[tuple[str, float, float]]:
    """Two equal models, two that differ by the margin, and a family of tasks."""
    margin_ = margin("f1_macro")
    print(
        f"\n| two models | different at 5 % when equal | equivalent when equal | equivalent when they differ by {margin_} |"
    )
    print("|---|---|---|---|")
    for counts in ((44, 4), (40, 12), (27, 20), (60, 59), (1708, 490)):
        truth, rng = np.repeat([0, 1], counts), np.random.default_rng(0)
        grid = np.linspace(0.5, 0.8, 3001)
        far = grid[np.argmin(np.abs(_macro_f1(counts, 0.8) - np.array([_macro_f1(counts, q) for q in grid]) - margin_))]
        equal = [_pair(truth, 0.8, rng, seed) for seed in range(repetitions)]
        apart = [_pair(truth, far, rng, seed) for seed in range(repetitions)]
        different = 100 * np.mean([not ends[0] <= 0 <= ends[1] for ends, _ in equal])
        same, wrong = (
            100 * np.mean([-margin_ < low and high < margin_ for _, (low, high) in p]) for p in (equal, apart)
        )
        print(f"| {counts[0]}/{counts[1]} | {different:.1f} | {same:.1f} | {wrong:.1f} |")
        yield f"different {counts}", different, 5 + noise(5, repetitions, 3)
        yield f"equivalent at the margin {counts}", wrong, 5 + noise(5, repetitions)
    any_above, family = [], Family("tasks", tuple(TEST_SETS))
    for seed in range(repetitions):
        rng, p_values, above = np.random.default_rng(seed), {}, {}
        for name, counts in TEST_SETS.items():
            rows = sampler(*coin(counts, 0.5)(rng), seed)
            above[name] = call("f1_macro", rows)[0]
            p_values[name] = information_test(rows.sample, rows.clusters, 2, 1999, seed).p_value
        any_above.append(
            (
                any(p < 0.05 for p in p_values.values()),
                any(above[t] and family.adjust(p_values[t]) < 0.05 for t in TEST_SETS),
            )
        )
    mean = 100 * np.mean(any_above, axis=0)
    print(
        f"\n{len(TEST_SETS)} tasks without information: one or more p < .05 in {mean[0]:.1f} %, one or more above the floor in {mean[1]:.1f} %"
    )
    yield "family", mean[1], 5 + noise(5, repetitions)


def _macro_f1(counts: tuple[int, int], share: float) -> float:
    """Macro F1 of a model with that sensitivity and specificity, at these counts."""
    table = np.array([[counts[0] * share, counts[0] * (1 - share)], [counts[1] * (1 - share), counts[1] * share]])
    return float(load_metric("f1_macro").from_tables(table, BOTH)["f1_macro"])


def _pair(truth: np.ndarray, other: float, rng: np.random.Generator, seed: int) -> tuple[tuple, tuple]:
    """95 % and 90 % interval of the difference of a model that is right in .8 and another, which agree in 60 % of the rows."""
    same, u, v = rng.random(len(truth)) < 0.6, rng.random(len(truth)), rng.random(len(truth))
    right = u < 0.8, np.where(same, u, v) < other
    a, b = (ScoringInput(truth, np.where(x, truth, 1 - truth)) for x in right)
    clusters = Clusters.of(np.arange(len(truth)))
    ends, inner, _, _ = paired_difference(load_metric("f1_macro"), "f1_macro", a, b, clusters, 2, DRAWS, seed)
    return ends, inner


def missing(repetitions: int) -> Iterator[tuple[str, float, float]]:
    """Judge a coin that omits its errors, 12 of 119 rows (25/94): on the answered rows, and on the worst case."""
    truth, rng, found = np.repeat([0, 1], (25, 94)), np.random.default_rng(0), []
    for seed in range(repetitions):
        answer = (rng.random(119) < 94 / 119).astype(int)
        gone = np.argsort(rng.random(119) + (answer == truth))[:12]
        kept = np.setdiff1d(np.arange(119), gone)
        worst = completed(ScoringInput(truth[kept], answer[kept]), truth[gone], 2)
        found.append(
            (
                call("f1_macro", sampler(truth[kept], answer[kept], kept, seed))[2],
                call("f1_macro", sampler(worst.y_true, worst.y_pred, np.arange(119), seed))[2],
            )
        )
    mean = 100 * np.mean(found, axis=0)
    print(
        f"\na coin that leaves out its errors: above the floor in {mean[0]:.1f} % of the answered, {mean[1]:.1f} % of the worst case"
    )
    yield "missing answers", mean[1], 5 + noise(5, repetitions)


def correlation(repetitions: int) -> Iterator[tuple[str, float, float]]:
    """Text axis: value and place stay within the patient, no relation; patients of 1 to 8 rows."""
    for people in (60, 20):
        rng, found = np.random.default_rng(0), []
        for seed in range(repetitions):
            who = np.repeat(np.arange(people), rng.integers(1, 9, people))
            x, y = rng.normal(size=people)[who], rng.normal(size=people)[who] + 0.5 * rng.normal(size=len(who))
            rows = Clusters.of(np.arange(len(who)))
            found.append(
                (
                    p_of_correlation(x, y, rows, 299, seed) < 0.05,
                    p_of_correlation(x, y, Clusters.of(who), 299, seed) < 0.05,
                )
            )
        mean = 100 * np.mean(found, axis=0)
        print(
            f"text axis, {people} patients, no relation: p < .05 in {mean[0]:.1f} % by rows, {mean[1]:.1f} % by patients"
        )
        yield f"correlation {people}", mean[1], 5 + noise(5, repetitions)


def noise(percent: float, repetitions: float, deviations: float = 2) -> float:
    """Monte-Carlo error of a share in %, in standard deviations."""
    return deviations * float(np.sqrt(percent * (100 - percent) / repetitions))


PARTS = (false_alarms, power, coverage, every_metric, gaps, comparisons, missing, correlation)


def main(repetitions: int = 300) -> int:
    """Print every table; return how many promises are not kept."""
    broken = [name for part in PARTS for name, value, limit in part(repetitions) if value > limit]
    print(f"\n{len(broken)} promises are not kept{': ' + ', '.join(broken) if broken else ''}")
    return len(broken)


if __name__ == "__main__":
    sys.exit(min(1, main(*map(int, sys.argv[1:]))))
