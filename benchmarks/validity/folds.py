"""Information test out of fold: permutations of the answers of `cross_validation`, and permutations of labels with refits.

    OMP_NUM_THREADS=1 python -m benchmarks.validity.folds [REPETITIONS] [FAMILIES]

Two minutes of one core at 300 repetitions, and a quarter of an hour at 1,000 families. It is about an extension, so that the core's promises (`__main__`) do without it.
"""

import sys
from collections.abc import Iterator

import numpy as np

from benchmarks.validity.simulated import Promise, noise
from cardiobench.extensions.cross_validation.protocol import CrossValidation
from cardiobench.scoring.verdict import FIXED
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.information import p_of_ranking
from cardiobench.stats.permuted_labels import refitted_test

FAMILY = 14
"""Tasks of a suite, one of which is judged at a level of .05 / 14."""
FIRST = 100_000
"""First seed of the families, which are other test sets than those of the table."""
CASES = {
    "noise, 200 patients, 512 features": (200, 512, 0.0),
    "noise, 100 patients, 50 features": (100, 50, 0.0),
    "signal, 200 patients, 512 features": (200, 512, 1.5),
    "signal, 200 patients, 64 features": (200, 64, 1.05),
}


def out_of_fold(repetitions: int) -> Iterator[Promise]:
    """Logistic regression by `cross_validation`, 5 folds, 30 % ill: % of p below each level."""
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


def families(number: int) -> Iterator[Promise]:
    """Count the families of 14 tests of noise, 200 patients of 512 features, in which refits give a false alarm.

    In theory they are at most 4.8 %. Rows of noise can be exchanged within a fold, whatever the folds know of the labels:
    the observed labels are one of 2,000 permutations that are all alike, the first 7 of which lie below .05 / 14, and a test
    that ends early only loses alarms. A test therefore has a chance of .0035 at most.
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
    """Return p of the fixed answers and of refits, of one test set."""
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
    """Return p of labels permuted within the folds of `cross_validation` and fitted again."""
    patients = np.arange(len(labels))
    folds = np.empty(len(labels), dtype=np.int64)
    for number, (_, held) in enumerate(protocol.outer_folds(labels, patients)):
        folds[held] = number
    return refitted_test(features, labels, folds, Clusters.of(patients), seed=protocol.seed).p_value


if __name__ == "__main__":
    repetitions, number = map(int, (*sys.argv[1:], *("300", "0")[len(sys.argv) - 1 :]))
    kept = [value <= limit for part in (out_of_fold(repetitions), families(number)) for _, value, limit in part]
    sys.exit(0 if all(kept) else 1)
