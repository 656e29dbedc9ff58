"""Simulate what the verdicts promise: false alarms, power, coverage, rare failures, gaps, comparisons, rankings, missing answers.

Every rule is run as the package runs it, on answers whose truth is known. Prints Markdown tables; fails where a promise
is not kept. Four minutes of one core at 300 repetitions:

    OMP_NUM_THREADS=1 python -m benchmarks.validity [REPETITIONS]
"""

import sys

from benchmarks.validity.differences import comparisons, equal_models, gaps, group_differences, label_comparisons
from benchmarks.validity.every_metric import every_metric
from benchmarks.validity.frames import permuted_frames
from benchmarks.validity.intervals import coverage
from benchmarks.validity.means import rare_failures, unequal_patients
from benchmarks.validity.tables import best_of_many, rankings
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
    gaps,
    group_differences,
    comparisons,
    equal_models,
    label_comparisons,
    rankings,
    best_of_many,
    missing,
    correlation,
    permuted_frames,
)


def broken(part, repetitions: int) -> list[str]:
    """Print the tables of a part; return the names of the promises that are not kept."""
    return [name for name, value, limit in part(repetitions) if value > limit]


def main(repetitions: int = 300) -> int:
    """Print every table; return how many promises are not kept."""
    names = [name for part in PARTS for name in broken(part, repetitions)]
    print(f"\n{len(names)} promises are not kept{': ' + ', '.join(names) if names else ''}")
    return len(names)


if __name__ == "__main__":
    sys.exit(min(1, main(*map(int, sys.argv[1:]))))
