from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

from cardiobench.metrics.load import load_metric
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.number import Number
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.score_result import Floor
from cardiobench.stats.information import expected_macro_f1
from cardiobench.tasks.floors import COLLAPSED_SPREAD, _shares, best_uninformed, floors, is_collapsed
from cardiobench.tasks.landmarks import Landmarks
from cardiobench.tasks.tables import ScoredTable
from tests.scoring.factories import BINARY, VALUE


def table(train, test):
    frame = pd.DataFrame({"y_true": [*train, *test], "split": ["train"] * len(train) + ["test"] * len(test)})
    return frame.assign(id=[f"u{i}" for i in range(len(frame))], patient_id="p")


def test_regression_floors_by_hand():
    test = np.array([40.0, 50.0, 60.0, 90.0])
    found = floors(load_metric("mae"), "mae", VALUE, table([10.0, 50.0], test), test)
    assert found["best_constant"].prediction == 55.0  # The median has |15| + |5| + |5| + |35| = 60.
    assert found["best_constant"].value == 15.0
    assert (found["train_constant"].prediction, found["train_constant"].value) == (30.0, 30.0)


def test_no_constant_beats_the_best_constant():
    rng = np.random.default_rng(1)
    test = rng.gamma(2, 10, 101)
    best = floors(load_metric("mae"), "mae", VALUE, table([1.0], test), test)["best_constant"].value
    assert best <= min(np.abs(test - value).mean() for value in np.linspace(0, 100, 4001)) + 1e-12


def test_best_constant_of_a_squared_error_is_the_mean():
    squared = Metric(
        "mse",
        lambda references, predictions: {"mse": np.mean((references - predictions) ** 2)},
        {"mse": Number("mse", "lower")},
    )
    test = np.array([0.0, 0.0, 9.0])
    found = floors(squared, "mse", VALUE, table([1.0], test), test)["best_constant"]
    assert (found.prediction, found.value) == (3.0, 18.0)


def test_classification_floors_by_hand():
    test = np.array([1] * 94 + [0] * 25)
    found = floors(load_metric("f1_macro"), "f1_macro", BINARY, table(["sick"] * 3 + ["well"] * 7, []), test)
    assert found["best_constant"].prediction == "sick"
    assert found["best_constant"].value == pytest.approx(94 / 213)  # Half of 2*94 / (2*94 + 25).
    assert found["train_constant"].prediction == "well"
    assert found["train_constant"].value == pytest.approx(25 / 144)


def test_reason_without_train_rows():
    test = np.array([1.0, 2.0])
    found = floors(load_metric("mae"), "mae", VALUE, table([], test), test)
    assert np.isnan(found["train_constant"].value) and "no train rows" in found["train_constant"].reason
    assert found["best_constant"].value == 0.5


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(44, 4), (25, 94), (26, 26), (10, 20, 70), (3, 0, 9)])
def test_no_permutation_beats_the_floor(counts):
    """Check that the mean macro F1 of permutations is below 1 / K for any mix of predictions, and largest at class rates."""
    truth = np.repeat(np.arange(len(counts)), counts)
    floor = best_uninformed("f1_macro", truth, len(counts)).value
    present, sizes = np.array(counts) > 0, np.array(counts, dtype=float)
    assert floor == pytest.approx(1 / present.sum())
    rng = np.random.default_rng(0)
    mixes = [*rng.dirichlet(np.ones(len(counts)), 3000), sizes / sizes.sum()]
    means = [expected_macro_f1(np.outer(sizes, mix), present) for mix in mixes]
    assert max(means) <= floor + 1e-12 and means[-1] == pytest.approx(floor)
    drawn = [f1_score(truth, rng.permutation(truth), average="macro") for _ in range(400)]
    assert np.mean(drawn) == pytest.approx(floor, abs=4 * np.std(drawn) / 20)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("balanced_accuracy", 1 / 2), ("accuracy", 0.7), ("auroc", 0.5), ("mcc", 0), ("auprc", 0.3), ("ppv", 0.3),
        ("npv", 0.7), ("brier", 0.21), ("nll", -0.3 * np.log(0.3) - 0.7 * np.log(0.7)),
    ],
)  # fmt: skip
def test_closed_forms_of_two_classes(key, value):
    truth = np.repeat([0, 1], (70, 30))
    assert best_uninformed(key, truth, 2).value == pytest.approx(value)
    rates = np.tile([0.7, 0.3], (100, 1))
    if key in ("brier", "nll"):
        report = load_metric("classification_report").compute(truth, rates)
        assert report[key] == pytest.approx(value)


def test_single_view_or_class_has_no_floor():
    assert "read sensitivity and specificity together" in best_uninformed("sensitivity", np.array([0, 1, 1]), 2).reason
    assert "one class" in best_uninformed("f1_macro", np.array([1, 1, 1]), 2).reason


def test_floors_of_numbers():
    truth = np.array([40.0, 50.0, 60.0, 90.0])
    assert best_uninformed("mae", truth, 0).value == 15
    assert best_uninformed("rmse", truth, 0).value == pytest.approx(np.std(truth))
    assert best_uninformed("pearson", truth, 0).value == best_uninformed("r2", truth, 0).value == 0


def test_collapsed_predictions_are_flagged():
    truth = np.array([0, 1, 1, 0])
    assert is_collapsed(BINARY, ScoringInput(truth, np.ones(4, dtype=int)))
    assert not is_collapsed(BINARY, ScoringInput(truth, np.array([1, 1, 1, 0])))
    assert not is_collapsed(BINARY, ScoringInput(truth[:1], truth[:1]))
    values = np.array([40.0, 50.0, 60.0, 70.0])
    for factor, expected in (
        (0.0, True),
        (COLLAPSED_SPREAD * 0.99, True),
        (COLLAPSED_SPREAD * 1.01, False),
        (1.0, False),
    ):
        assert is_collapsed(VALUE, ScoringInput(values, 55 + factor * (values - 55))) is expected


def test_shares_count_the_measured_rows_of_each_class():
    measured = np.array(
        [[1, np.nan, 1, np.nan], [np.nan, 0, 1, np.nan], [np.nan, 1, 0, np.nan], [np.nan, 1, 1, np.nan]]
    )
    assert _shares(measured).tolist() == [1, 2 / 3, 3 / 4, 0]


def test_lowest_error_is_the_best_floor():
    for key, hardest in (("mae", 3.0), ("r2", 7.0)):
        higher = SimpleNamespace(higher_is_better=key == "r2")
        given = {"site": Floor(3.0), "age": Floor(7.0), "unknown": Floor(np.nan)}
        scored = SimpleNamespace(metric=SimpleNamespace(numbers={key: higher}), key=key, given_floors=given)
        assert ScoredTable.hardest(scored, Floor(5.0)).value == hardest


def test_nearly_constant_points_are_constant():
    labels = [np.array([[-10.0, 0.0]]), np.array([[10.0, 0.0]])]  # A standard deviation of 10.
    for spread, same in ((0.05, True), (0.2, False)):
        answers = [np.array([[-spread, 4.0]]), np.array([[spread, 4.0]])]
        assert Landmarks().all_same(labels, answers) is same
