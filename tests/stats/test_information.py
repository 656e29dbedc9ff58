"""Test the information test: exact for exchangeable patients, and valid for patients with many rows."""

import numpy as np
import pytest
from scipy import stats

from cardiobench.metrics.load import load_formula
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.information import (
    PatientPermutations,
    information_test,
    p_of_classes,
    p_of_correlation,
    p_of_numbers,
    p_of_ranking,
)


def alone(n):
    return Clusters.of(np.arange(n))


def shares(scores):
    positive = 1 / (1 + np.exp(-scores))
    return np.stack([1 - positive, positive], axis=1)


def test_two_by_two_is_fishers_exact_test():
    """With fixed margins, macro F1 grows with the hits, so the permutation p-value estimates Fisher's one-sided p-value."""
    truth = np.repeat([0, 1], (12, 10))
    answer = np.array([0] * 9 + [1] * 3 + [0] * 4 + [1] * 6)
    exact = stats.fisher_exact([[9, 3], [4, 6]], alternative="greater").pvalue
    assert p_of_classes(truth, answer, alone(22), 2, 9999).p_value == pytest.approx(exact, abs=0.012)


def test_reversed_predictions_are_detected_by_the_other_tail():
    """With one row per patient, AUROC is the Mann-Whitney statistic with scipy's tails; permuted statistics agree."""
    rng, ill = np.random.default_rng(0), np.repeat([0, 1], (40, 30))
    score = rng.normal(size=70) - 1.5 * ill
    exact = stats.mannwhitneyu(score[ill == 1], score[ill == 0], alternative="less").pvalue
    found = p_of_ranking(ill, shares(score), alone(70))
    assert found.p_reversed == pytest.approx(exact) and found.p_value > 0.99 and found.test == "Mann-Whitney's test"
    classes = p_of_classes(ill, (score > 0).astype(int), alone(70), 2)
    assert classes.p_reversed < 0.01 < classes.p_value and classes.test == "1,999 permutations"
    value = rng.normal(55, 10, 70)
    numbers = p_of_numbers(value, 110 - value + rng.normal(0, 5, 70), alone(70))
    assert numbers.p_reversed < 0.01 < numbers.p_value


def test_constants_and_one_class_carry_nothing():
    truth = np.repeat([0, 1], (44, 4))
    assert p_of_classes(truth, np.zeros(48, int), alone(48), 2).p_value == 1
    assert p_of_classes(np.zeros(20, int), np.arange(20) % 2, alone(20), 2).p_value == 1
    assert p_of_ranking(truth, np.full((48, 2), 0.5), alone(48)).p_value == 1
    assert p_of_numbers(np.arange(20.0), np.full(20, 5.0), alone(20)).p_value == 1


def test_permutations_keep_patients_together():
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(30), rng.integers(1, 6, 30))
    permutations = PatientPermutations(Clusters.of(who), rng)
    giver, receiver = (
        np.concatenate([who[permutations.rows[source]] for source in permutations.draw(50)]),
        who[permutations.rows],
    )
    for row in giver:
        assert all(len(set(row[receiver == patient])) == 1 for patient in range(30))
        assert len(np.unique(row)) == 30


def test_permutations_stay_within_strata():
    rng, strata = np.random.default_rng(0), np.arange(30) % 3
    who = np.repeat(np.arange(30), 2)
    permutations = PatientPermutations(Clusters.of(who), rng, strata)
    for source in permutations.draw(20):
        assert (strata[who[permutations.rows[source]]] == strata[who[permutations.rows]]).all()


def test_every_row_of_a_donor_is_permuted_alike():
    """A patient with more rows than the donor gets all of them; one with fewer gets each with the same frequency."""
    who = np.repeat(np.arange(3), [1, 2, 3])
    permutations = PatientPermutations(Clusters.of(who), np.random.default_rng(0))
    source = np.concatenate(list(permutations.draw(6000)))
    giver, row = who[permutations.rows[source]], permutations.rows[source]
    receiver = who[permutations.rows]
    for patient in range(3):
        for donor, size in enumerate((1, 2, 3)):
            given = row[giver[:, receiver == patient][:, 0] == donor][:, receiver == patient]
            assert all(len(set(line)) == min(size, patient + 1) for line in given[:50])
            share = np.bincount(given[:, 0], minlength=6)[who == donor] / len(given)
            assert share == pytest.approx(1 / size, abs=0.05)


def test_permutations_respect_one_recording_of_each_view_per_patient():
    """Permuting whole patients with their rows in order would give a perfect model p = 1."""
    patients, truth = np.repeat(np.arange(40), 2), np.tile([0, 1], 40)
    assert p_of_classes(truth, truth, Clusters.of(patients), 2).p_value < 0.01


TESTS = {  # Function of patients' values: p-value from true classes, true numbers, predictions, clusters and seed.
    "classes": lambda ill, value, score, clusters, seed: (
        p_of_classes(ill, (score > 0).astype(int), clusters, 2, 199, seed).p_value
    ),
    "ranking": lambda ill, value, score, clusters, seed: p_of_ranking(ill, shares(score), clusters, 199, seed).p_value,
    "numbers": lambda ill, value, score, clusters, seed: p_of_numbers(value, score, clusters, 199, seed).p_value,
    "correlation": lambda ill, value, score, clusters, seed: p_of_correlation(value, score, clusters, 199, seed),
}


@pytest.mark.parametrize("kind", ["classes", *(pytest.param(kind, marks=pytest.mark.slow) for kind in list(TESTS)[1:])])
def test_rows_of_a_patient_do_not_count_as_patients(kind):
    """Simulate unrelated labels and predictions, constant within patients: p < .05 in 5 % by patients, 20 to 40 % by rows."""
    by_patient, by_row = [], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        who = np.repeat(np.arange(40), rng.integers(1, 8, 40))
        ill, value = (rng.random(40) < 0.4)[who].astype(int), rng.normal(size=40)[who]
        score = rng.normal(size=40)[who] + 0.3 * rng.normal(size=len(who))
        by_patient.append(TESTS[kind](ill, value, score, Clusters.of(who), seed) < 0.05)
        by_row.append(TESTS[kind](ill, value, score, alone(len(who)), seed) < 0.05)
    assert np.mean(by_patient) <= 0.10 < np.mean(by_row)


def test_predictions_with_an_offset_still_carry_information():
    rng = np.random.default_rng(0)
    truth = rng.normal(55, 10, 50)
    assert p_of_numbers(truth, 0.7 * truth - 60 + rng.normal(0, 5, 50), alone(50)).p_value < 0.01


def test_several_classes_with_probabilities():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 80)
    table = rng.dirichlet(np.ones(4), 80)
    assert p_of_ranking(truth, table, alone(80), 999).p_value > 0.01
    table[np.arange(80), truth] += 0.5
    assert p_of_ranking(truth, table / table.sum(axis=1, keepdims=True), alone(80), 999).p_value == pytest.approx(0.001)


def test_many_patients_are_tested_on_a_selection():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=30_000)
    sample = ScoringInput(truth, truth + rng.normal(0, 3, 30_000))
    found = information_test(sample, alone(30_000), 0, draws=99)
    assert found.n_patients == 10_000 and found.p_value == 0.01


@pytest.mark.slow
def test_alignment_metric_permutes_patients_too():
    """Test the metric's own permutation: value and position are constant within a patient, and unrelated."""
    formula, texts = load_formula("text_axis_pearson"), [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]
    by_patient, by_row = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        who = np.repeat(np.arange(30), rng.integers(1, 8, 30))
        vectors = np.stack([rng.normal(size=30)[who] + 0.1 * rng.normal(size=len(who)), np.full(len(who), 3.0)], axis=1)
        given = {"references": rng.normal(size=30)[who], "predictions": vectors, "text_embeddings": texts}
        for patients, found in ((who, by_patient), (None, by_row)):
            found.append(formula.compute(**given, permutations=99, seed=seed, patients=patients)["p_value"] <= 0.05)
    assert np.mean(by_patient) <= 0.15 < np.mean(by_row)


def test_correlation_p_value_equals_numpy():
    rng = np.random.default_rng(3)
    patients = np.repeat(np.arange(12), [1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 12])
    x = rng.exponential(size=len(patients)) ** 2
    y, clusters = rng.normal(size=len(x)), Clusters.of(patients)
    permutations = PatientPermutations(clusters, np.random.default_rng(0))
    first, second = x[permutations.rows], y[permutations.rows]
    permuted = [abs(np.corrcoef(first[one], second)[0, 1]) for source in permutations.draw(300) for one in source]
    reached = sum(np.array(permuted) >= abs(np.corrcoef(x, y)[0, 1]) - 1e-9)
    assert p_of_correlation(x, y, clusters, 300) == pytest.approx((1 + reached) / (1 + len(permuted)))
