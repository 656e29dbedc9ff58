"""Sketches of the rules that turn numbers into words and classes, which numbers in a result do not cover."""

from itertools import product
from pathlib import Path

import numpy as np

from cardiobench.metrics.number import Number
from cardiobench.protocols.cut import rate_cut
from cardiobench.results.score_result import Estimate, Floor
from cardiobench.results.verdict import Verdict
from cardiobench.scoring.verdict import judge
from cardiobench.stats.information import Information
from cardiobench.tasks.scored import Evidence, Patients
from tests.versions.case import plain

P_VALUES = (0.001, 0.01, 0.012, 0.02, 0.03, 0.049, 0.051, 0.1, 0.5)


def verdicts(folder: Path) -> list:
    """Return the verdict and the corrected p-value around every limit of the rules."""
    words, found = list(Verdict), []
    patients = product((4.0, 9.0, 11.0, 40.0), (3.0, 6.0, 9.0, 11.0, 40.0))
    cases = product(patients, (-0.1, 0.02), P_VALUES, (0.005, 0.02, 1.0), (False, True))
    for (effective, others), gain, p, reversed_p, out_of_fold in cases:
        estimate = Estimate(0.5 + gain, 0.5 + gain - 0.01, 0.5 + gain + 0.01, 100, 100, se=0.005)
        information = Information(p, "auroc", 100, reversed_p, "1,999 permutations")
        evidence = Evidence(estimate, Floor(0.5, reason=""), information, 100, Patients(100, effective, others, "well"))
        made = judge(evidence, Number("score"), out_of_fold=out_of_fold)
        found.append([1.0 + words.index(made.word), made.p_adjusted])
    return found


def cuts(folder: Path) -> list:
    """Return the weights of two classes and of several."""
    found = []
    for classes in (2, 5):
        number = np.arange(120)
        labels = (number * number) % 7 % classes
        probabilities = 0.3 + np.eye(classes)[(labels + (number % 3 == 0)) % classes] + number[:, None] % 11 / 20
        probabilities[:, 0] += 0.4
        found.append(rate_cut(probabilities / probabilities.sum(axis=1, keepdims=True), labels))
    return found


CASES = {
    "verdicts": plain(verdicts, "scoring"),
    "rate cut": plain(cuts, "protocol knn", "protocol probe"),
}
