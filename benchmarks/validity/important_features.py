"""Simulate the overlap of important features between classifiers trained on noise, and between informative ones.

    OMP_NUM_THREADS=1 python -m benchmarks.validity.important_features [REPETITIONS]

A hundred repetitions take 30 s each on one core.
"""

import sys

import numpy as np

from cardiobench.extensions.representation import overlap
from cardiobench.protocols.sample import BalancedSample, DatasetSample
from cardiobench.stats.information import p_value

RECORDS, DIMENSIONS, OF_CLASS, APART, KEY = 100, 256, 40, 0.35, "overlap_at_50"


def sample(seed: int, apart: float) -> BalancedSample:
    """Return two datasets; the classes have distance `apart` in `OF_CLASS` dimensions."""
    rng, parts = np.random.default_rng(seed), []
    for name in ("one", "two"):
        labels = np.tile([1, 0], RECORDS // 2)
        features = rng.normal(size=(RECORDS, DIMENSIONS))
        features[:, :OF_CLASS] += apart * labels[:, None]
        number = np.arange(RECORDS)
        parts.append(DatasetSample(name, features, labels, number, number.astype(str)))
    return BalancedSample(("no", "yes"), tuple(parts))


def main(repetitions: int = 100) -> None:
    """Print how often p <= .05, and the overlaps with those of classifiers on permuted labels."""
    print(
        "| datasets | p <= .05, % | two classifiers: overlap, expected | one classifier: overlap, of permuted labels |"
    )
    print("|---|---|---|---|")
    for name, apart in (("noise", 0.0), (f"{OF_CLASS} dimensions encode the class", APART)):
        rows = []
        for seed in range(repetitions):
            records = sample(seed, apart)
            results = {
                part.name: {"logistic": overlap.SearchResult(part.name, "logistic", 0.5, 0.0, {"C": 0.1})}
                for part in records.parts
            }
            chosen = results["one"]["logistic"]
            shap = overlap.explain(records, chosen, results, refit=True, rows=RECORDS, seed=0)
            noise = [one[KEY] for one in overlap.noise_overlaps(records, chosen, results, shap, rows=RECORDS, seed=0)]
            carried = [
                overlap.overlap(overlap.explain(one, chosen, results, refit=False, rows=RECORDS, seed=0))[KEY]
                for one in (records, records.shuffle_labels(seed))
            ]
            seen = overlap.overlap(shap)[KEY]
            rows.append((100 * (p_value(seen, np.array(noise)) <= 0.05), seen, np.mean(noise), *carried))
        found = np.mean(rows, axis=0)
        print("| {} | {:.0f} | {:.2f}, {:.2f} | {:.2f}, {:.2f} |".format(name, *found))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
