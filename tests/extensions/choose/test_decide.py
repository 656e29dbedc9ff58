"""Test the decision: equal models are not separated, a better one is found, and the required number of patients is standard."""

import numpy as np
import pytest

from benchmarks.validity.choices import EF, PARTS, SICK, Rivals, broken
from cardiobench.extensions.choose.decide import decide, patients_needed
from cardiobench.scoring.ranking import rank_models
from cardiobench.scoring.verdict import DETECTABLE


def wrong_singles(case, runs, seed=3):
    rng = np.random.default_rng(seed)
    return np.mean([len(decide(case.answers(rng)).best) == 1 for _ in range(runs)])


@pytest.mark.parametrize(
    "case", [Rivals(2, 60), pytest.param(Rivals(5, 60), marks=pytest.mark.slow), Rivals(2, 60, (EF,))]
)
def test_equal_models_have_no_single_best(case):
    assert wrong_singles(case, 30) <= 0.15, "5 of 100 are expected; 30 trials need a margin"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "runs"), [(Rivals(2, 100), 600), (Rivals(6, 100), 200), (Rivals(2, 100, (SICK, EF)), 400)]
)
def test_equal_models_have_single_best_in_5_percent(case, runs):
    assert wrong_singles(case, runs, seed=11) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / runs)


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS[1:])
def test_operating_points_hold_in_simulation(part):
    assert broken(part, 200) == []


def test_better_model_is_the_only_best():
    found = decide(Rivals(4, 400, better=1.0).answers(np.random.default_rng(0)))
    assert found.best == ("m0",) and found.leader == "m0"


def test_two_metrics_combine_best_models():
    found = decide(Rivals(3, 400, (SICK, EF), better=1.0).answers(np.random.default_rng(0)))
    assert len(found.rankings) == 2 and found.best == ("m0",)


def test_single_model():
    found = decide(Rivals(1, 60).answers(np.random.default_rng(0)))
    assert found.best == ("m0",) and not found.rankings


def test_patients_needed_make_difference_detectable():
    answers = Rivals(2, 200, better=0.15).of_task(SICK, np.random.default_rng(5))
    (ranking,) = rank_models({("toy/sick", "probe"): answers})
    difference = abs(ranking.places[0].score - ranking.places[1].score)
    count = patients_needed(ranking, "m0", "m1")
    error = ranking.error("m0", "m1")
    assert count == int(np.ceil(200 * (DETECTABLE * error / difference) ** 2))
    # With this many patients, the difference is usually detected.
    assert DETECTABLE * error * np.sqrt(200 / count) == pytest.approx(difference, rel=0.02)


def test_identical_models_need_no_patient_count():
    answers = Rivals(1, 100).of_task(SICK, np.random.default_rng(5))
    (ranking,) = rank_models({("toy/sick", "probe"): {**answers, "copy": answers["m0"]}})
    assert patients_needed(ranking, "m0", "copy") is None


def test_error_of_difference_uses_paired_patients():
    answers = Rivals(2, 150).of_task(EF, np.random.default_rng(1))
    (ranking,) = rank_models({("toy/ef", "probe"): answers})
    errors = [np.abs(one.frame["y_pred"] - one.frame["y_true"]) for one in answers.values()]
    assert ranking.error("m0", "m1") == pytest.approx((errors[0] - errors[1]).std(ddof=1) / np.sqrt(150), rel=1e-9)
    assert ranking.patients == 150
