"""Simulate false alarms, power, and models that omit their errors."""

from collections.abc import Iterator

import numpy as np

from benchmarks.validity.simulated import (
    TEST_SETS,
    Guarantee,
    binormal,
    call,
    clustered,
    coin,
    noise,
    numbers,
    rates,
    sampler,
)
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.information import p_of_correlation
from cardiobench.tasks.bounds import completed

RATES = (0.1, 0.3, 0.5, 0.7, 0.9)


def false_alarms(repetitions: int) -> Iterator[Guarantee]:
    """Print random predictions at six rates on every test set: % above the floor, and the guarantee."""
    print("\n| coins, worst of six rates | interval above | p < .05 | **above the floor** |\n|---|---|---|---|")
    for name, counts in TEST_SETS.items():
        own = counts[1] / sum(counts)
        worst = np.max([rates(coin(counts, q), repetitions) for q in (*RATES, own)], axis=0)
        print(f"| {name} | {worst[0]:.1f} | {worst[1]:.1f} | {worst[2]:.1f} |")
        yield name, worst[2], 5 + noise(5, repetitions)
    cases = [clustered(q, stays, labels) for q in (0.3, 0.5) for stays in (0, 0.5, 1) for labels in (1, 0.5)]
    worst = np.max([rates(make, repetitions // 2) for make in cases], axis=0)
    print(f"| 120 patients with 1 to 12 rows, 12 kinds of coin | {worst[0]:.1f} | {worst[1]:.1f} | {worst[2]:.1f} |")
    yield "clusters", worst[2], 5 + noise(5, repetitions // 2)
    folds = [clustered(q, 0, 1, 300) for q in (0.3, 0.5, 0.7)]
    worst = np.max([rates(make, repetitions // 2) for make in folds], axis=0)
    print(f"| cross-validation, 300 patients out of fold | {worst[0]:.1f} | {worst[1]:.1f} | {worst[2]:.1f} |")
    yield "cross-validation", worst[2], 5 + noise(5, repetitions // 2)
    for n in (29, 150):
        found = rates(numbers(n, 0), repetitions, "mae", 0)
        print(f"| ejection fraction, noise, n = {n} | {found[0]:.1f} | {found[1]:.1f} | {found[2]:.1f} |")
        yield f"EF noise {n}", found[2], 5


EXPECTED = {  # An independent implementation, 200 repetitions: AUROC -> % above the floor, cut even / at the class rate
    "TMED AS 25/94": {0.7: (41, 68), 0.8: (95, 99)},
    "ASD 27/20": {0.7: (48, 45), 0.8: (87, 90)},
    "STEMI 24/26": {0.7: (48, 55), 0.8: (88, 87)},
    "RWMA 44/4": {0.8: (0, 0), 0.9: (0, 0)},  # Four patients outside the most frequent class are "too few to say".
}
EXPECTED_OF_NUMBERS = {29: {0.7: 38, 0.8: 76}, 60: {0.5: 7, 0.7: 81}, 150: {0.5: 48, 0.6: 92}}
"""For ejection fractions: patients -> correlation of calibrated predictions -> % of intervals above the floor."""
EXPECTED_REPETITIONS = 200


def power(repetitions: int) -> Iterator[Guarantee]:
    """Print models of known AUROC: % above the floor, even / rate, at least the reference up to noise."""
    print("\n| power, threshold one half / rate cut | AUROC | above the floor |\n|---|---|---|")
    for name, levels in EXPECTED.items():
        for auroc, least in levels.items():
            found = [rates(binormal(TEST_SETS[name], auroc, cut), repetitions)[2] for cut in ("even", "rate")]
            print(f"| {name} | {auroc} | {found[0]:.0f} / {found[1]:.0f} |")
            for value, reference in zip(found, least, strict=True):
                both = 1 / (1 / repetitions + 1 / EXPECTED_REPETITIONS)
                yield f"power {name} {auroc}", reference - value, noise((value + reference) / 2, both, 3)
    both = 1 / (1 / repetitions + 1 / EXPECTED_REPETITIONS)
    print("\n| power, ejection fraction | r | interval above | p < .05 | above the floor |\n|---|---|---|---|---|")
    for n, levels in EXPECTED_OF_NUMBERS.items():
        for r, reference in levels.items():
            interval, small, above = rates(numbers(n, r), repetitions, "mae", 0)
            print(f"| {n} patients | {r} | {interval:.0f} | {small:.0f} | {above:.0f} |")
            yield f"power EF {n} {r}", reference - above, noise((above + reference) / 2, both, 3)


def missing(repetitions: int) -> Iterator[Guarantee]:
    """Judge random predictions without 12 of the errors in 119 rows (25/94): on the predicted rows, and in the worst case."""
    truth, rng, found = np.repeat([0, 1], (25, 94)), np.random.default_rng(0), []
    for seed in range(repetitions):
        answer = (rng.random(119) < 94 / 119).astype(int)
        gone = np.argsort(rng.random(119) + (answer == truth))[:12]
        kept = np.setdiff1d(np.arange(119), gone)
        worst = completed(ScoringInput(truth[kept], answer[kept]), truth[gone], 2, worst=True)
        found.append(
            (
                call("f1_macro", sampler(truth[kept], answer[kept], kept, seed))[2],
                call("f1_macro", sampler(worst.y_true, worst.y_pred, np.arange(119), seed))[2],
            )
        )
    mean = 100 * np.mean(found, axis=0)
    print(
        f"\na coin without its wrong predictions: above the floor in {mean[0]:.1f} % of the answered, {mean[1]:.1f} % of the worst case"
    )
    yield "missing answers", mean[1], 5 + noise(5, repetitions)


def correlation(repetitions: int) -> Iterator[Guarantee]:
    """Simulate a text axis: value and position are constant within a patient with 1 to 8 rows, and unrelated."""
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
