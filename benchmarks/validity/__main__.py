"""Simulate the guarantees of the verdicts: false alarms, power, coverage, failures, gaps, comparisons, rankings, missing data.

Every rule runs as in the package, on predictions with known truth. The script prints Markdown tables and fails if a guarantee is
broken. It takes four minutes on one core at 300 repetitions:

    OMP_NUM_THREADS=1 python -m benchmarks.validity [REPETITIONS]
"""

import sys

from benchmarks.validity.differences import comparisons, equal_models, gaps, group_differences, label_comparisons
from benchmarks.validity.every_metric import every_metric
from benchmarks.validity.frames import permuted_frames, power_of_frames
from benchmarks.validity.intervals import coverage
from benchmarks.validity.means import rare_failures, unequal_patients
from benchmarks.validity.pages import pages
from benchmarks.validity.subsets import of_subsets
from benchmarks.validity.tables import best_of_many, rankings
from benchmarks.validity.training_patients import equal_encoders
from benchmarks.validity.verdicts import correlation, false_alarms, missing, power
from benchmarks.validity.words import words

PARTS = (
    false_alarms,
    power,
    words,
    coverage,
    every_metric,
    rare_failures,
    unequal_patients,
    of_subsets,
    gaps,
    group_differences,
    comparisons,
    equal_models,
    label_comparisons,
    equal_encoders,
    rankings,
    best_of_many,
    missing,
    correlation,
    permuted_frames,
    pages,
)


def broken(part, repetitions: int) -> list[str]:
    """Print the tables of a part; return the names of guarantees that do not hold."""
    return [name for name, value, limit in part(repetitions) if value > limit]


def main(repetitions: int = 300) -> int:
    """Print every table; return the number of guarantees that do not hold."""
    names = [name for part in PARTS for name in broken(part, repetitions)]
    power_of_frames(repetitions)
    print(f"\n{len(names)} guarantees do not hold{': ' + ', '.join(names) if names else ''}")
    return len(names)


if __name__ == "__main__":
    sys.exit(min(1, main(*map(int, sys.argv[1:]))))
