"""Compare two models with their refits: hand-worked intervals, missing and different draws, and sentences."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from cardiobench.results.refits import NO_TRAINING, TRAINING_PATIENTS, TRAINING_SEEDS, Refits
from cardiobench.scoring.compare import compare
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.ranking import rank_models
from cardiobench.scoring.ranks import compare_all
from cardiobench.scoring.refits import Variation, variation_of_results
from cardiobench.stats.paired import UNKNOWN, students, with_refits
from cardiobench.stats.variability import mean_over_tasks, paired_refit_spread
from cardiobench.tasks.answers import RefitAnswers, TableAnswers, stack_refits

from .factories import VALUE, references, test_rows

TABLE = references(VALUE, n_test=80, per_patient=1)


def model(error, name="a", refits=20, varies=TRAINING_PATIENTS, draws="d", noise=0.5, seed=0):
    """Return predictions with errors of about `error`, and refits whose errors also vary."""
    truth, rng = test_rows(TABLE), np.random.default_rng([seed, int(10 * error)])

    def answers(size):
        return truth[["id"]].assign(y_pred=truth["y_true"] + size * rng.normal(size=len(truth)))

    joined = Predictions.join(TABLE, answers(error), VALUE, source=name)
    tables = [answers(error + noise * rng.normal()) for _ in range(refits)]
    return replace(joined, refits=stack_refits(tables, joined.frame["id"], VALUE, varies, 0, draws))


def maes(answers):
    return [np.abs(one.sample().y_pred - one.sample().y_true).mean() for one in answers.of_refits()]


def test_spread_of_paired_refits_is_that_of_their_differences():
    assert paired_refit_spread([0.8, 0.9, 0.7], [0.7, 0.7, 0.7]) == pytest.approx(0.1)
    assert paired_refit_spread([0.8, 0.9, 0.7], [0.8, 0.9, 0.7]) == 0, "shared variation cancels"
    assert paired_refit_spread([0.8, np.nan, 0.7], [0.6, 0.6, 0.6]) == pytest.approx(np.std([0.2, 0.1], ddof=1))
    assert np.isnan(paired_refit_spread([0.8, np.nan], [0.6, 0.6])) and np.isnan(paired_refit_spread([], []))
    with pytest.raises(ValueError, match="3 and 2 refits"):
        paired_refit_spread([0.8, 0.9, 0.7], [0.7, 0.7])


def test_refits_are_averaged_over_tasks_before_their_spread():
    of_tasks = [[0.8, 0.9], [0.6, 0.9]]
    assert mean_over_tasks(of_tasks).tolist() == pytest.approx([0.7, 0.9])
    with pytest.raises(ValueError, match=r"tasks with \[1, 2\] refits"):
        mean_over_tasks([[0.8, 0.9], [0.6]])


def test_variances_of_patients_and_refits_add_up():
    """Two equal variances of 100 patients and 20 refits: Satterthwaite's degrees of freedom are 4 / (1/99 + 1/19)."""
    patients = students(0.03, 0.01, 1e9)
    found = with_refits(patients, 0.03, 0.01, 20, 100)
    freedom = 4 / (1 / 99 + 1 / 19)
    arm = stats.t.ppf(0.975, freedom) * 0.01 * np.sqrt(2)
    assert (found.low, found.high) == pytest.approx((0.03 - arm, 0.03 + arm), rel=1e-6)
    assert found.p_value == pytest.approx(2 * stats.t.sf(3 / np.sqrt(2), freedom), rel=1e-6)
    assert found.se == pytest.approx(0.01 * np.sqrt(2))
    inner = stats.t.ppf(0.95, freedom) * 0.01 * np.sqrt(2)
    assert (found.inner_low, found.inner_high) == pytest.approx((0.03 - inner, 0.03 + inner), rel=1e-6)
    assert with_refits(patients, 0.03, 0.0, 20, 100) == patients
    assert with_refits(UNKNOWN, 0.03, 0.01, 20, 100) is UNKNOWN


def test_models_with_the_same_draws_are_compared_over_their_refits():
    first, second = model(2.0), model(2.6, "b")
    found, alone = compare(first, second), compare(replace(first, refits=None), replace(second, refits=None))
    spread = np.std(np.subtract(maes(first), maes(second)), ddof=1)
    assert (found.covers, found.refits) == ("test and training patients", 20)
    assert found.difference == alone.difference and found.low < alone.low and found.high > alone.high
    assert found.detectable == pytest.approx(3.5 * np.hypot(alone.detectable / 3.5, spread))
    assert alone.covers == "answers" and alone.p_value < found.p_value
    assert "80 patients, 20 refits on other training patients" in str(found)


def test_refits_are_scored_once_however_many_models_they_are_compared_with(monkeypatch):
    own, scored = TableAnswers.of_refits, []
    monkeypatch.setattr(TableAnswers, "of_refits", lambda one: scored.append(one.source) or own(one))
    first, second, third = model(2.0), model(2.6, "b"), model(3.1, "c")
    alone = compare(model(2.0), model(2.6, "b"))
    scored.clear()
    models = {"a": first, "b": second, "c": third}
    pairs = compare_all({("dataset/value", "probe"): models})
    rank_models({("dataset/value", "probe"): models})
    assert sorted(scored) == ["a", "b", "c"]
    assert replace(pairs[0].comparison, p_adjusted=alone.p_adjusted) == alone
    assert compare(first, second, "regression_report").covers == alone.covers and scored[3:] == ["a", "b"], (
        "another metric, other scores"
    )


def test_order_of_rows_changes_no_comparison():
    first, second = model(2.0), model(2.6, "b")
    turned = replace(second, frame=second.frame[::-1].reset_index(drop=True))
    found, same = compare(first, turned), compare(first, second)
    assert (found.difference, found.low, found.high, found.p_value) == (
        same.difference,
        same.low,
        same.high,
        same.p_value,
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda refits: None,
        lambda refits: replace(refits, draws="others"),
        lambda refits: replace(refits, varies=TRAINING_SEEDS),
        lambda refits: replace(refits, columns={"y_pred": refits.columns["y_pred"][:, :10]}),
        lambda refits: replace(refits, columns={"y_pred": np.repeat(refits.columns["y_pred"][:, :1], 20, axis=1)}),
    ],
    ids=["no refits", "other draws", "seeds beside patients", "other number", "no spread"],
)
def test_sets_of_answers_are_compared_without_refits_of_both(change):
    first, second = model(1.0, "near"), model(9.0, "far")
    found = compare(first, replace(second, refits=change(second.refits)))
    assert (found.covers, found.outcome, found.better) == ("answers", "answers differ", "answers differ")
    assert found.sentence.startswith("these two sets of answers differ, in favour of near; difference -")
    assert "is better" not in f"{found}{found.sentence}{found!r}"
    assert "answers only: other training patients are not covered" in str(found)
    apart = {"near": first, "far": replace(second, refits=change(second.refits))}
    (ranking,) = rank_models({(VALUE.name, "probe"): apart})
    assert ranking.standings.placed_by_answers() == ["near", "far"], "places and sentences agree"
    turned = compare(replace(second, refits=change(second.refits)), first)
    assert "in favour of near" in turned.sentence and turned.covers == "answers"


def test_models_without_training_are_compared_over_test_patients():
    first, second = (replace(one, refits=RefitAnswers(NO_TRAINING)) for one in (model(1.0, "near"), model(9.0, "far")))
    found = compare(first, second)
    assert (found.covers, found.outcome, found.scope) == ("test patients", "better", "")
    assert found.sentence.startswith("near is better")
    mixed = compare(first, model(9.0, "far"))
    assert (mixed.covers, mixed.outcome) == ("test and training patients", "better")
    alone = compare(first, replace(second, refits=None))
    assert mixed.high > alone.high and alone.covers == "answers"


def test_seeds_are_named_as_such():
    first, second = (model(size, name, 3, TRAINING_SEEDS) for size, name in ((1.0, "near"), (12.0, "far")))
    found = compare(first, second)
    assert found.covers == "test patients and seeds of the training" and found.outcome == "better"
    assert "3 trainings with other seeds" in str(found)


def test_model_equals_itself():
    found = compare(model(2.0), model(2.0))
    assert (found.difference, found.p_value, found.outcome) == (0, 1, "equivalent")


def test_missing_answers_keep_the_refits_of_the_others():
    first, second = model(1.0, "near"), model(9.0, "far")
    truth = test_rows(TABLE)
    some = first.frame[["id", "y_pred"]][2:]
    fewer = replace(Predictions.join(TABLE, some, VALUE, source="near", allow_missing=True), refits=first.refits)
    found = compare(fewer, second)
    assert found.covers == "test and training patients" and found.n == len(truth)
    assert found.low < compare(first, second).low


def test_results_without_predictions_have_the_same_variation():
    first, second = model(2.0), model(2.6, "b")
    one, two = (Refits(TRAINING_PATIENTS, 0, "d", 20, {"mae": tuple(maes(each))}) for each in (first, second))
    found = compare(first, second)
    assert variation_of_results(one, two, "mae") == Variation(
        found.covers, pytest.approx(np.std(np.subtract(maes(first), maes(second)), ddof=1)), 20
    )
    none = Refits(NO_TRAINING)
    assert variation_of_results(none, none, "mae") == Variation("test patients")
    assert variation_of_results(one, none, "mae").spread == pytest.approx(np.std(maes(first), ddof=1))
    others = [replace(two, scores=scores) for scores in ({}, {"mae": (1.0, 2.0)}, {"mae": (np.nan,) * 20})]
    for other in (None, replace(two, draws="e"), *others):
        assert variation_of_results(one, other, "mae") == Variation("answers")


def test_equivalent_answers_are_called_answers():
    same = compare(replace(model(2.0), refits=None), model(2.0))
    assert (same.outcome, same.of_answers) == ("equivalent", True) and not compare(model(2.0), model(2.0)).of_answers
    assert same.sentence.startswith("these two sets of answers are equivalent within")
