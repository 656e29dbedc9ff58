"""Simulate the information test out of fold: permutations of predictions of `cross_validation`, and of labels with refits.

    OMP_NUM_THREADS=1 python -m benchmarks.validity.folds [REPETITIONS] [FAMILIES]

This takes two minutes on one core at 300 repetitions, and 15 minutes at 1,000 families. It tests an extension, so it is separate
from the core's guarantees (`__main__`).
"""

import sys
from collections.abc import Iterator

import numpy as np

from benchmarks.validity.simulated import Guarantee, noise
from cardiobench.extensions.cross_validation.protocol import CrossValidation
from cardiobench.scoring.verdict import FIXED
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.information import p_of_ranking
from cardiobench.stats.permuted_labels import refitted_test

FAMILY = 14
"""Number of tasks of a suite; each is tested at a level of .05 / 14."""
FIRST = 100_000
"""First seed of the families, whose test sets differ from those of the table."""
CASES = {
    "noise, 200 patients, 512 features": (200, 512, 0.0),
    "noise, 100 patients, 50 features": (100, 50, 0.0),
    "signal, 200 patients, 512 features": (200, 512, 1.5),
    "signal, 200 patients, 64 features": (200, 64, 1.05),
}


def out_of_fold(repetitions: int) -> Iterator[Guarantee]:
    """Print the share of p-values below each level for logistic regression by `cross_validation`, 5 folds, 30 % ill."""
    print("\n| out of fold | fixed answers: .05, .05/3, .05/14 | refits: .05, .05/14 | a family of 14, fixed, refits |")
    print("|---|---|---|---|")
    for name, (people, width, gain) in CASES.items():
        found = np.array(
            [p_values(people, width, gain, seed) for seed in range(repetitions if not gain else repetitions // 4)]
        )
        fixed, refitted = found.T
        shares = [
            100 * (p < level).mean() for p, level in ((fixed, 0.05), (fixed, 0.05 / FIXED), (fixed, 0.05 / FAMILY))
        ]
        kept, strict = 100 * (refitted < 0.05).mean(), (refitted < 0.05 / FAMILY).mean()
        families = [100 * (1 - (1 - share) ** FAMILY) for share in (shares[2] / 100, strict)]
        fixed_text = ", ".join(f"{share:.1f}" for share in shares)
        family_text = ", ".join(f"{share:.0f}" for share in families) if not gain else ""
        print(f"| {name} | {fixed_text} | {kept:.1f}, {100 * strict:.1f} | {family_text} |", flush=True)
        if gain:
            yield name, 70 - kept, noise(70, repetitions // 4)
        else:
            yield f"{name}, refits", kept, 5 + noise(5, repetitions)
            yield f"{name}, refits in a family", 100 * strict, 5 / FAMILY + noise(5 / FAMILY, repetitions)


def families(number: int) -> Iterator[Guarantee]:
    """Count the families of 14 tests on noise (200 patients, 512 features) in which refits give a false alarm.

    In theory, the share is at most 4.8 %. Rows of noise are exchangeable within a fold, whatever the folds know of the labels:
    the observed labels are one of 2,000 equally likely permutations, the first 7 of which are below .05 / 14, and early stopping
    only removes alarms. Each test therefore has a probability of at most .0035.
    """
    people, width, _ = CASES["noise, 200 patients, 512 features"]
    seeds = FIRST + np.arange(number * FAMILY)
    found = np.array([p_of_refits(*test_set(people, width, 0.0, int(seed))) for seed in seeds]).reshape(-1, FAMILY)
    small = found < 0.05 / FAMILY
    rate, exact = 100 * small.any(axis=1).mean(), 100 * (1 - (1 - 7 / 2000) ** FAMILY)
    print(
        f"\n{number} families of {FAMILY}: {rate:.1f} % with a false alarm, {exact:.1f} in theory; of their {small.size} tests "
        f"{100 * small.mean():.2f} % below .05/{FAMILY} and {100 * (found < 0.05).mean():.1f} % below .05"
    )
    yield "families out of fold", rate, exact + noise(exact, number)


def p_values(people: int, width: int, gain: float, seed: int) -> tuple[float, float]:
    """Return the p-values of fixed predictions and of refits on one test set."""
    features, labels, protocol = test_set(people, width, gain, seed)
    patients = np.arange(people)
    answers = protocol.cross_validate("logistic", features, labels, patients).probabilities
    fixed = p_of_ranking(labels, answers, Clusters.of(patients))
    return fixed.p_value, p_of_refits(features, labels, protocol)


def test_set(people: int, width: int, gain: float, seed: int) -> tuple[np.ndarray, np.ndarray, CrossValidation]:
    """Return features (n, d), labels (n,) and the protocol of one test set."""
    rng = np.random.default_rng([31, seed, people, width])
    labels = (rng.random(people) < 0.3).astype(np.int64)
    features = rng.normal(size=(people, width))
    features[:, 0] += gain * labels
    features[:, 1:4] += gain / 3 * labels[:, None]
    return features, labels, CrossValidation(folds=5, seed=seed)


def p_of_refits(features: np.ndarray, labels: np.ndarray, protocol: CrossValidation) -> float:
    """Return the p-value of labels permuted within the folds of `cross_validation` and fitted again."""
    patients = np.arange(len(labels))
    folds = np.empty(len(labels), dtype=np.int64)
    for number, (_, held) in enumerate(protocol.outer_folds(labels, patients)):
        folds[held] = number
    return refitted_test(features, labels, folds, Clusters.of(patients), seed=protocol.seed).p_value


if __name__ == "__main__":
    repetitions, number = map(int, (*sys.argv[1:], *("300", "0")[len(sys.argv) - 1 :]))
    kept = [value <= limit for part in (out_of_fold(repetitions), families(number)) for _, value, limit in part]
    sys.exit(0 if all(kept) else 1)
