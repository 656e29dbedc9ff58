"""Simulate gaps between groups of patients, and differences between two models."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy import stats

from benchmarks.validity.simulated import BOTH, DRAWS, TEST_SETS, Guarantee, call, coin, noise, sampler
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.scoring.compare import paired_difference
from cardiobench.scoring.families import Family, margin
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler
from cardiobench.stats.information import information_test
from cardiobench.tasks.groups import breakdowns, gap_tests


def gaps(repetitions: int) -> Iterator[Guarantee]:
    """Print the share of p < .05 and the mean excess of the gap, for groups with and without a difference."""
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
            groups = [np.flatnonzero(group == g) for g in range(len(shares))]
            (gap,) = gap_tests(load_metric("f1_macro"), "f1_macro", rows, [groups], 199)
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


OF_CLASSES = {
    "same mix, 200": (200, (0.3, 0.3), (0.7, 0.7)),
    "10 and 60 % ill, 400, no difference": (400, (0.1, 0.6), (0.8, 0.8)),
    "sensitivity .9 and .6, 40 % ill both, 300": (300, (0.4, 0.4), (0.9, 0.6)),
    "sensitivity .9 and .6, 15 and 50 % ill, 300": (300, (0.15, 0.5), (0.9, 0.6)),
}
OF_NUMBERS = {
    "EF, 20 points sicker, errors grow as EF falls, 300": (300, 20, 0.25, 0.0),
    "EF, errors 1.5 times as large, 20 points sicker, 300": (300, 20, 0.1, 3.5),
}
"""Number of patients; for each group its prevalence and sensitivity, or its shift in severity and its errors."""
DIFFERENT = {"sensitivity .9 and .6, 40 % ill both, 300": 77, "sensitivity .9 and .6, 15 and 50 % ill, 300": 43, "EF, errors 1.5 times as large, 20 points sicker, 300": 53}  # fmt: skip
"""Share of test sets in which a difference is claimed, in %."""


def group_differences(repetitions: int) -> Iterator[Guarantee]:
    """Simulate the difference of two groups beyond their mix: p, interval, both, and coverage of the mean excess."""
    print("\n| two groups | p < .05, interval without 0, both | covers the true excess |\n|---|---|---|")
    for name, make in [(name, partial(_of_classes, *case)) for name, case in OF_CLASSES.items()] + [
        (name, partial(_of_numbers, *case)) for name, case in OF_NUMBERS.items()
    ]:
        found = []
        for seed in range(repetitions):
            key, rows, group = make(np.random.default_rng([8, seed]), seed)
            split = {"two": {str(code): np.flatnonzero(group == code) for code in (0, 1)}}
            gap = breakdowns(load_metric(key), key, rows, split, 199)["two"].gap
            beside = not gap.low <= 0 <= gap.high
            found.append((gap.p_value < 0.05, beside, gap.p_value < 0.05 and beside, gap.difference, gap.low, gap.high))
        table = np.array(found, dtype=np.float64)
        excess = table[:, 3].mean()
        p, beside, both = 100 * table[:, :3].mean(axis=0)
        covers = 100 * float(np.mean((table[:, 4] <= excess) & (table[:, 5] >= excess)))
        print(f"| {name} | {p:.0f}, {beside:.0f}, {both:.0f} | {covers:.0f} |")
        if name in DIFFERENT:
            yield f"difference of groups, {name}", DIFFERENT[name] - both, noise(DIFFERENT[name], repetitions)
        else:
            yield f"no difference of groups, {name}", both, 5 + noise(5, repetitions)
        yield f"coverage of the excess, {name}", 93 - covers, noise(93, repetitions)


def _of_classes(
    people: int, mixes: tuple[float, float], sens: tuple[float, float], rng: np.random.Generator, seed: int
) -> tuple[str, Sampler, np.ndarray]:
    group = rng.integers(0, 2, people)
    truth = (rng.random(people) < np.array(mixes)[group]).astype(int)
    drawn = rng.random(people)
    answer = np.where(truth == 1, drawn < np.array(sens)[group], drawn > 0.85).astype(int)
    return "f1_macro", sampler(truth, answer, np.arange(people), seed), group


def _of_numbers(
    people: int, sicker: float, grows: float, extra: float, rng: np.random.Generator, seed: int
) -> tuple[str, Sampler, np.ndarray]:
    group = (rng.random(people) < 0.5).astype(int)
    truth = np.clip(rng.normal(58 - sicker * group, 10), 10, 80)
    answer = truth + rng.normal(size=people) * (4 + grows * (80 - truth) + extra * group)
    return "mae", sampler(truth, answer, np.arange(people), seed, 0), group


def comparisons(repetitions: int) -> Iterator[Guarantee]:
    """Simulate two equal models, two that differ by the margin, and a family of tasks."""
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
        f"\n{len(TEST_SETS)} tasks without information: at least one p < .05 in {mean[0]:.1f} %, at least one above the floor in {mean[1]:.1f} %"
    )
    yield "family", mean[1], 5 + noise(5, repetitions)


def _rare(rng: np.random.Generator) -> tuple[ScoringInput, ScoringInput, np.ndarray]:
    """Predict 12 ill of 400 with two models of sensitivity .6 and specificity .95."""
    truth = np.repeat([0, 1], (388, 12))
    first, second = (
        ScoringInput(truth, np.where(rng.random(400) < np.where(truth == 1, 0.6, 0.95), truth, 1 - truth)) for _ in "ab"
    )
    return first, second, np.arange(400)


def _five(rng: np.random.Generator) -> tuple[ScoringInput, ScoringInput, np.ndarray]:
    """Predict five classes, the rarest 4 %, with two models that know 60 % of the labels."""
    truth = rng.choice(5, 150, p=[0.5, 0.3, 0.12, 0.04, 0.04])
    first, second = (ScoringInput(truth, np.where(rng.random(150) < 0.6, truth, rng.integers(0, 5, 150))) for _ in "ab")
    return first, second, np.arange(150)


def _clustered(rng: np.random.Generator, sizes: np.ndarray) -> tuple[ScoringInput, ScoringInput, np.ndarray]:
    """Predict patients with several rows with two models of accuracy 75 %, often constant within a patient."""
    people, who = len(sizes), np.repeat(np.arange(len(sizes)), sizes)
    truth = (rng.random(people) < 0.4).astype(int)[who]

    def answers() -> ScoringInput:
        own = (rng.random(people) < 0.75)[who]
        right = np.where(rng.random(len(who)) < 0.6, own, rng.random(len(who)) < 0.75)
        return ScoringInput(truth, np.where(right, truth, 1 - truth))

    return answers(), answers(), who


def _heavy(rng: np.random.Generator) -> tuple[ScoringInput, ScoringInput, np.ndarray]:
    """Predict ejection fractions with heavy-tailed errors."""
    truth = rng.normal(55, 10, 30)
    first, second = (ScoringInput(truth, truth + 4 * rng.standard_t(2.5, 30)) for _ in "ab")
    return first, second, np.arange(30)


EQUAL = {
    "12 of 400 ill": (_rare, "f1_macro", 2),
    "5 classes, rarest 4 %, 150": (_five, "f1_macro", 5),
    "60 patients with 1 to 8 rows": (lambda rng: _clustered(rng, rng.integers(1, 9, 60)), "f1_macro", 2),
    "12 of 72 patients with 30 rows": (lambda rng: _clustered(rng, np.repeat([30, 1], [12, 60])), "f1_macro", 2),
    "EF errors of 4 t(2.5), 30 patients": (_heavy, "mae", 0),
}


def equal_models(repetitions: int) -> Iterator[Guarantee]:
    """Simulate two equal models on rare classes, unequal patients and heavy tails."""
    print("\n| two equal models | called different, % |\n|---|---|")
    for name, (make, key, count) in EQUAL.items():
        metric, called = load_metric(key), []
        for seed in range(repetitions):
            first, second, who = make(np.random.default_rng([78, seed]))
            found = paired_difference(metric, key, first, second, Clusters.of(who), count, DRAWS, seed)
            called.append(not found.low <= 0 <= found.high)
        different = 100 * float(np.mean(called))
        print(f"| {name} | {different:.1f} |")
        yield f"different {name}", different, 5 + noise(5, repetitions, 3)


def _macro_f1(counts: tuple[int, int], share: float) -> float:
    """Return the macro F1 of a model with this sensitivity and specificity at these counts."""
    table = np.array([[counts[0] * share, counts[0] * (1 - share)], [counts[1] * (1 - share), counts[1] * share]])
    return float(load_metric("f1_macro").from_tables(table, BOTH)["f1_macro"])


def _pair(truth: np.ndarray, other: float, rng: np.random.Generator, seed: int) -> tuple[tuple, tuple]:
    """Return 95 % and 90 % intervals of the difference of two models with accuracy about .8 that agree in 60 % of the rows."""
    same, u, v = rng.random(len(truth)) < 0.6, rng.random(len(truth)), rng.random(len(truth))
    right = u < 0.8, np.where(same, u, v) < other
    a, b = (ScoringInput(truth, np.where(x, truth, 1 - truth)) for x in right)
    clusters = Clusters.of(np.arange(len(truth)))
    low, high, *inner, _, _ = paired_difference(load_metric("f1_macro"), "f1_macro", a, b, clusters, 2, DRAWS, seed)
    return (low, high), tuple(inner)


def label_comparisons(repetitions: int) -> Iterator[Guarantee]:
    """Simulate two equal models of AUROC .8 on several labels, some of them rare, with or without correlated predictions."""
    metric, shift = load_metric("auroc_macro"), np.sqrt(2) * stats.norm.ppf(0.8)
    print("\n| two equal models on several labels | p < .05, predictions unrelated / related, % |\n|---|---|")
    for people, shares in (
        (200, tuple(np.geomspace(0.005, 0.3, 20))),
        (300, (0.005, 0.01, 0.02)),
        (150, tuple(np.geomspace(0.02, 0.1, 5))),
        (50, (0.05, 0.1, 0.2, 0.3, 0.5)),
        (150, (0.02, 0.05, 0.1, 0.2, 0.3)),
        (500, (0.01, 0.02, 0.05, 0.1, 0.3)),
    ):
        found = []
        for related in (0.0, 0.7):
            rng, different = np.random.default_rng(0), []
            for seed in range(repetitions):
                truth = (rng.random((people, len(shares))) < shares).astype(float)
                common = np.sqrt(related) * rng.normal(size=truth.shape)
                scores = (common + np.sqrt(1 - related) * rng.normal(size=truth.shape) + shift * truth for _ in "ab")
                a, b = (ScoringInput(truth, one) for one in scores)
                clusters = Clusters.of(np.arange(people))
                different.append(
                    paired_difference(metric, "auroc_macro", a, b, clusters, 0, DRAWS, seed).p_value < 0.05
                )
            found.append(100 * float(np.mean(different)))
        name = f"{people} patients, {len(shares)} labels, the rarest {100 * min(shares):.1f} %"
        print(f"| {name} | {found[0]:.1f} / {found[1]:.1f} |")
        yield f"different labels {name}", max(found), 5 + noise(5, repetitions, 3)
