"""Test the operating point: hand-worked thresholds, predictive values and net benefit; coverage of intervals."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cardiobench.core.errors import BadPredictions
from cardiobench.data.spec import Task
from cardiobench.extensions.choose.operating_point import (
    at_prevalence,
    choose_threshold,
    guarded_threshold,
    operating_point,
)
from cardiobench.stats.clusters import Clusters
from cardiobench.tasks.answers import TableAnswers

SICK = Task("toy/sick", "binary", "sick", ("f1_macro",), ("well", "sick"))


def answers(truth, p):
    names = np.array(SICK.classes)
    p = np.asarray(p, dtype=float)
    truth = np.asarray(truth)
    table = pd.DataFrame({
        "id": [f"r{n}" for n in range(len(p))], "patient_id": [f"p{n}" for n in range(len(p))],
        "y_true": names[truth], "y_pred": names[(p >= 0.5).astype(int)], "p_well": 1 - p, "p_sick": p,
    })  # fmt: skip
    return TableAnswers(SICK, table, len(p), "toy")


@pytest.mark.parametrize(("asked", "threshold"), [(1.0, 0.1), (0.9, 0.2), (0.91, 0.1), (0.1, 1.0), (0.05, 1.0)])
def test_threshold_is_the_largest_that_reaches_the_sensitivity(asked, threshold):
    scores = np.array([*np.arange(1, 11) / 10, 0.95, 0.05])  # There are ten positives and two negatives.
    truth = np.array([1] * 10 + [0, 0])
    found = choose_threshold(scores, truth, asked)
    assert found == threshold and np.mean(scores[:10] >= found) >= asked


def test_no_positive_unit_gives_no_threshold():
    with pytest.raises(BadPredictions, match=r"toy/sick: no validation unit has the class"):
        operating_point(answers([0, 0], [0.1, 0.2]), answers([0, 1], [0.1, 0.9]), 0.9)


def test_predictive_values_and_net_benefit_by_hand():
    # Of 1000 patients, 100 are ill (90 detected, 10 not detected) and 900 are healthy (180 false alarms).
    ppv, npv, benefit = at_prevalence(np.array(0.9), np.array(0.8), 0.1, 0.2)
    assert ppv == pytest.approx(90 / 270) and npv == pytest.approx(720 / 730)
    assert benefit == pytest.approx(90 / 1000 - 180 / 1000 * 0.2 / 0.8)
    assert at_prevalence(np.array(1.0), np.array(0.0), 0.1, 0.2)[2] == pytest.approx(0.1 - 0.9 * 0.25), (
        "treat all patients"
    )


def test_threshold_one_has_no_net_benefit():
    point = operating_point(answers([1, 0], [1.0, 0.2]), answers([1, 0], [1.0, 0.2]), 0.9, 0.5)
    assert point.threshold == 1 and math.isnan(point.net_benefit[0]) and math.isnan(point.sensitivity[1]), (
        "few patients"
    )


def test_test_patients_do_not_affect_the_choice():
    rng = np.random.default_rng(0)
    truth, p = rng.integers(0, 2, 100), rng.uniform(size=100)
    held = answers(truth, p)
    one = operating_point(held, answers(truth, p), 0.8, 0.1)
    other = operating_point(held, answers(1 - truth, p**2), 0.8, 0.1)
    assert one.threshold == other.threshold and one.sensitivity != other.sensitivity
    assert one.reached == one.sensitivity[0] >= 0.8
    for value, low, high in (one.sensitivity, one.specificity, one.ppv, one.npv, one.net_benefit):
        assert low < value < high
    assert operating_point(held, answers(truth, p), 0.8, 0.1) == one


def test_guarded_threshold_has_an_exact_lower_bound():
    scores, truth = np.linspace(0, 1, 60)[::-1], np.ones(60, dtype=int)
    threshold = guarded_threshold(scores, truth, 0.9)
    found = int((scores >= threshold).sum())
    bounds = [
        stats.binomtest(hits, 60, alternative="greater").proportion_ci(0.95, "exact").low for hits in (found - 1, found)
    ]
    assert bounds[0] < 0.9 <= bounds[1]
    assert threshold < choose_threshold(scores, truth, 0.9)
    # Sixty rows of 30 patients count as 30 patients.
    assert guarded_threshold(scores, truth, 0.9, Clusters.of(np.arange(60) // 2)) < threshold
    with pytest.raises(BadPredictions, match=r"28 positive validation patients.*at least 29 are needed"):
        guarded_threshold(scores[:28], truth[:28], 0.9)


def test_guarded_operating_point_reaches_a_bound_on_validation_patients():
    rng = np.random.default_rng(3)
    truth = (rng.random(200) < 0.4).astype(int)
    held = answers(truth, np.clip(0.4 + 0.3 * truth + 0.15 * rng.normal(size=200), 0, 1))
    plain, guarded = (operating_point(held, held, 0.8, guarded=one) for one in (False, True))
    probabilities = held.sample().probabilities[:, 1]
    assert guarded.guarded and guarded.threshold == guarded_threshold(probabilities, truth, 0.8) < plain.threshold
    assert guarded.reached > plain.reached >= 0.8
    with pytest.raises(BadPredictions, match=r"toy/sick: 3 positive validation patients.*at least 14 are needed"):
        operating_point(answers([1, 1, 1, 0], [0.9, 0.8, 0.7, 0.2]), held, 0.8, guarded=True)


def test_without_prevalence_only_rates():
    point = operating_point(answers([1, 0], [0.7, 0.2]), answers([1, 0] * 10, [0.7, 0.2] * 10), 0.9)
    assert point.sensitivity[0] == point.specificity[0] == 1 and point.sensitivity[1] < 0.9
    assert math.isnan(point.ppv[0]) and math.isnan(point.net_benefit[0])


@pytest.mark.slow
def test_intervals_of_predictive_values_cover_the_truth():
    rng, prevalence, threshold = np.random.default_rng(4), 0.05, 0.5
    # Scores of both classes are normal: sensitivity 0.84 and specificity 0.93 at a threshold of 0.
    sensitivity, specificity = 0.8413, 0.9332
    true = [float(one) for one in at_prevalence(np.array(sensitivity), np.array(specificity), prevalence, threshold)]
    held = answers([1, 0], [threshold, 0.1])
    covered = np.zeros(3)
    runs = 200
    for _ in range(runs):
        truth = np.repeat([1, 0], [60, 90])
        score = np.where(truth == 1, 1.0, -1.5) + rng.normal(size=150)
        point = operating_point(held, answers(truth, 1 / (1 + np.exp(-score))), 0.9, prevalence)
        for number, found in enumerate((point.ppv, point.npv, point.net_benefit)):
            covered[number] += found[1] <= true[number] <= found[2]
    assert (covered / runs > 0.9).all(), covered / runs
