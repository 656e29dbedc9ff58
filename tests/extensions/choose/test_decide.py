"""The decision: equal models are not told apart, a better one is found, and the number of patients needed is the usual one."""

import numpy as np
import pandas as pd
import pytest

from cardiobench.data.spec import Task
from cardiobench.extensions.choose.decide import decide, patients_needed
from cardiobench.scoring.ranking import rank_models
from cardiobench.scoring.verdict import DETECTABLE
from cardiobench.tasks.answers import TableAnswers

SICK = Task("toy/sick", "binary", "sick", ("f1_macro",), ("well", "sick"))
EF = Task("toy/ef", "regression", "ef", ("mae",), unit="%", label_range=(0, 100))


def frame(count, truth, guess, **more):
    ids = {"id": [f"r{n}" for n in range(count)], "patient_id": [f"p{n}" for n in range(count)]}
    return pd.DataFrame({**ids, "y_true": truth, "y_pred": guess, **more})


def classifiers(rng, patients, models, better=0.0):
    """Answers of models that see a common noisy sign of the class and noise of their own; the first sees it more clearly."""
    truth = rng.integers(0, 2, patients)
    common, found = rng.normal(size=patients), {}
    for number in range(models):
        sign = (2 * truth - 1) * (0.8 + (better if number == 0 else 0)) + 0.7 * common + 0.7 * rng.normal(size=patients)
        p = 1 / (1 + np.exp(-2 * sign))
        names = np.array(SICK.classes)
        table = frame(patients, names[truth], names[(p >= 0.5).astype(int)], p_well=1 - p, p_sick=p)
        found[f"m{number}"] = TableAnswers(SICK, table, patients, f"m{number}")
    return found


def measurers(rng, patients, models):
    truth = rng.uniform(20, 70, patients)
    guesses = {f"m{n}": truth + rng.normal(size=patients) * 5 for n in range(models)}
    return {name: TableAnswers(EF, frame(patients, truth, one), patients, name) for name, one in guesses.items()}


def wrong_singles(make, task, runs, seed=3):
    rng = np.random.default_rng(seed)
    return np.mean([len(decide({task: make(rng)}).best) == 1 for _ in range(runs)])


@pytest.mark.parametrize(
    ("make", "task"),
    [
        (lambda rng: classifiers(rng, 60, 2), "toy/sick"),
        (lambda rng: classifiers(rng, 60, 5), "toy/sick"),
        (lambda rng: measurers(rng, 60, 2), "toy/ef"),
    ],
)
def test_equal_models_have_no_single_best(make, task):
    assert wrong_singles(make, task, 60) <= 0.1, "5 of 100, with room for 60 tries"


@pytest.mark.slow
@pytest.mark.parametrize(("models", "runs"), [(2, 600), (6, 200)])
def test_equal_models_have_a_single_best_in_five_of_a_hundred_tries(models, runs):
    share = wrong_singles(lambda rng: classifiers(rng, 100, models), "toy/sick", runs, seed=11)
    assert share <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / runs)


def test_a_better_model_is_the_only_best():
    found = decide({"toy/sick": classifiers(np.random.default_rng(0), 400, 4, better=1.0)})
    assert found.best == ("m0",) and found.leader == "m0"


def test_over_two_metrics_the_best_are_those_of_both():
    rng = np.random.default_rng(0)
    answers = {"toy/sick": classifiers(rng, 400, 3, better=1.0), "toy/ef": measurers(rng, 100, 3)}
    found = decide(answers)
    assert len(found.rankings) == 2 and found.best == ("m0",)


def test_one_model_is_alone():
    found = decide({"toy/sick": classifiers(np.random.default_rng(0), 60, 1)})
    assert found.best == ("m0",) and not found.rankings


def test_the_patients_needed_are_those_at_which_the_difference_is_detectable():
    answers = classifiers(np.random.default_rng(5), 200, 2, better=0.15)
    (ranking,) = rank_models({("toy/sick", "probe"): answers})
    difference = abs(ranking.places[0].score - ranking.places[1].score)
    count = patients_needed(ranking, "m0", "m1")
    error = ranking.errors["m0", "m1"]
    assert count == int(np.ceil(200 * (DETECTABLE * error / difference) ** 2))
    # With as many patients like these, the difference is what is usually detected.
    assert DETECTABLE * error * np.sqrt(200 / count) == pytest.approx(difference, rel=0.02)


def test_two_models_with_the_same_answers_need_no_number_of_patients():
    answers = classifiers(np.random.default_rng(5), 100, 1)
    (ranking,) = rank_models({("toy/sick", "probe"): {**answers, "copy": answers["m0"]}})
    assert patients_needed(ranking, "m0", "copy") is None


def test_the_error_of_a_difference_is_that_of_paired_patients():
    answers = measurers(np.random.default_rng(1), 150, 2)
    (ranking,) = rank_models({("toy/ef", "probe"): answers})
    errors = [np.abs(one.frame["y_pred"] - one.frame["y_true"]) for one in answers.values()]
    assert ranking.errors["m0", "m1"] == pytest.approx((errors[0] - errors[1]).std(ddof=1) / np.sqrt(150), rel=1e-9)
    assert ranking.patients == 150
