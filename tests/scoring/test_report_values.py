"""Compare report metrics and the subgroup gap with scikit-learn, scipy and hand-worked values."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sk

from cardiobench.metrics.load import load_metric

REGRESSION, CLASSIFICATION, GAP = (
    load_metric(name).compute for name in ("regression_report", "classification_report", "subgroup_gap")
)


def values(kind: str):
    rng = np.random.default_rng(2)
    n = {"tiny": 2, "large": 100_000}.get(kind, 70)
    truth = rng.normal(55, 10, n)
    guess = truth + rng.normal(0, 8, n)
    if kind == "tied":
        truth, guess = np.round(truth, -1), np.round(guess, -1)
    if kind == "far from zero":
        truth, guess = truth + 1e6, guess + 1e6
    if kind == "falling":
        guess = -truth
    return truth, guess


@pytest.mark.parametrize("kind", ["ordinary", "tied", "far from zero", "falling", "tiny", "large"])
def test_regression_against_scikit_learn_and_scipy(kind):
    truth, guess = values(kind)
    found = REGRESSION(truth, guess)
    assert found["rmse"] == pytest.approx(sk.root_mean_squared_error(truth, guess), rel=1e-12)
    assert found["nmae"] == pytest.approx(sk.mean_absolute_error(truth, guess) / np.ptp(truth), rel=1e-12)
    assert found["r2"] == pytest.approx(sk.r2_score(truth, guess), abs=1e-9)
    assert found["pearson"] == pytest.approx(stats.pearsonr(truth, guess)[0], abs=1e-9)
    assert found["spearman"] == pytest.approx(stats.spearmanr(truth, guess)[0], abs=1e-12)


def test_regression_by_hand():
    # Errors 4 0 0 4: RMSE is sqrt(8), NMAE is 2/50, R2 is 1 - 32/1300.
    found = REGRESSION([30.0, 50, 60, 80], [34.0, 50, 60, 84])
    assert found["rmse"] == pytest.approx(8**0.5) and found["nmae"] == pytest.approx(0.04)
    assert found["r2"] == pytest.approx(1 - 32 / 1300) and found["spearman"] == 1
    assert REGRESSION([30.0, 50, 60, 80], [34.0, 50, 60, 84], value_range=100)["nmae"] == pytest.approx(0.02)


@pytest.mark.parametrize("constant", [0.1, 55.0, -1e9])
def test_regression_with_a_constant_is_undefined_not_noise(constant):
    truth = np.random.default_rng(0).normal(55, 10, 33)
    found = REGRESSION(truth, np.full(33, constant))
    assert np.isnan(found["pearson"]) and np.isnan(found["spearman"]) and found["r2"] <= 0
    found = REGRESSION(np.full(33, constant), truth)
    assert all(np.isnan(found[key]) for key in ("pearson", "spearman", "r2", "nmae")) and found["rmse"] > 0
    assert np.isnan(REGRESSION([1.0], [2.0])["spearman"])


def test_resample_of_one_value_is_undefined():
    truth, guess = np.array([10.3, 20.7, 30.1]), np.array([11.1, 19.9, 33.3])
    drawn = load_metric("regression_report").compute_resamples(truth, guess, np.array([[3.0, 0, 0], [1, 1, 1]]))
    assert np.isnan(drawn["pearson"][0]) and np.isnan(drawn["spearman"][0]) and np.isnan(drawn["r2"][0])
    assert np.isfinite([drawn[key][1] for key in drawn]).all()


def classes(kind: str, k: int):
    rng = np.random.default_rng(3)
    n = {"tiny": 2 * k, "large": 20_000}.get(kind, 80)
    truth = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    table = rng.dirichlet(np.ones(k), n) * 0.6 + 0.4 * np.eye(k)[rng.integers(0, k, n)]
    if kind == "tied":
        table = np.round(table * 4) + 0.01
        table /= table.sum(axis=1, keepdims=True)
    if kind == "constant":
        table = np.tile(np.linspace(1, 2, k) / np.linspace(1, 2, k).sum(), (n, 1))
    return truth, table


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("kind", ["ordinary", "tied", "constant", "tiny", "large"])
def test_classification_against_scikit_learn(kind, k):
    truth, table = classes(kind, k)
    found, guess = CLASSIFICATION(truth, table), table.argmax(axis=1)
    labels = np.arange(k)
    assert found["accuracy"] == pytest.approx(sk.accuracy_score(truth, guess))
    assert found["balanced_accuracy"] == pytest.approx(sk.recall_score(truth, guess, average="macro", zero_division=0))
    auroc = sk.roc_auc_score(truth, table[:, 1]) if k == 2 else sk.roc_auc_score(truth, table, multi_class="ovr")
    precision = [sk.average_precision_score(truth == c, table[:, c]) for c in ([1] if k == 2 else labels)]
    assert found["auroc"] == pytest.approx(auroc, abs=1e-12)
    assert found["auprc"] == pytest.approx(np.mean(precision), abs=1e-12)
    assert found["brier"] == pytest.approx(sk.brier_score_loss(truth, table, labels=labels), abs=1e-12)
    assert found["nll"] == pytest.approx(sk.log_loss(truth, table, labels=labels), abs=1e-9)


def test_calibration_error_by_hand():
    # 15 bins of 1/15: 0.9 and 0.92 share a bin with one correct: |1 - 1.82|; 0.6 is wrong, on an upper edge: 0.6; 0.65: correct.
    truth = [0, 1, 1, 0]
    table = [[0.9, 0.1], [0.92, 0.08], [0.6, 0.4], [0.65, 0.35]]
    assert CLASSIFICATION(truth, table)["ece"] == pytest.approx((0.82 + 0.6 + 0.35) / 4)


def test_calibration_error_against_a_loop_over_bins():
    truth, table = classes("large", 3)
    confidence, correct = table.max(axis=1), table.argmax(axis=1) == truth
    expected = 0.0
    for low, high in zip(np.arange(15) / 15, np.arange(1, 16) / 15, strict=True):
        inside = (confidence > low) & (confidence <= high)
        if inside.any():
            expected += inside.mean() * abs(correct[inside].mean() - confidence[inside].mean())
    assert CLASSIFICATION(truth, table)["ece"] == pytest.approx(expected, abs=1e-12)


def test_labels_of_other_threshold_with_probabilities():
    truth, table = classes("ordinary", 2)
    guess = (table[:, 1] > 0.2).astype(int)
    found, own = CLASSIFICATION(truth, guess, table), CLASSIFICATION(truth, table)
    assert found["accuracy"] == pytest.approx(sk.accuracy_score(truth, guess)) != own["accuracy"]
    assert found["auroc"] == own["auroc"]
    bare = CLASSIFICATION(truth, guess)
    assert bare["accuracy"] == found["accuracy"] and np.isnan(bare["auroc"]) and np.isnan(bare["ece"])


def test_one_class_has_no_area_under_a_curve():
    found = CLASSIFICATION([1, 1, 1], [[0.2, 0.8], [0.6, 0.4], [0.1, 0.9]])
    assert np.isnan(found["auroc"]) and np.isnan(found["auprc"]) and found["accuracy"] == pytest.approx(2 / 3)


def test_impossible_label_has_finite_likelihood():
    assert CLASSIFICATION([0, 1], [[0.0, 1.0], [0.0, 1.0]])["nll"] == pytest.approx(-np.log(np.finfo(float).eps) / 2)


def test_rates_of_constant_answers_are_undefined():
    """Test a constant prediction of 2: no patient can be misclassified into another class, whatever the rounding of sums."""
    weights = np.random.default_rng(0).exponential(size=(500, 3))
    tables = np.zeros((500, 3, 3))
    tables[:, :, 2] = weights
    found = load_metric("classification_report").from_tables(tables, np.ones(3, bool))
    total = weights.sum(axis=1)
    expected = ((total - weights[:, 0]) / total + (total - weights[:, 1]) / total) / 2
    np.testing.assert_allclose(found["npv"], expected, rtol=1e-12)
    np.testing.assert_allclose(found["specificity"], 2 / 3, rtol=1e-12)
    assert np.isnan(found["mcc"]).all()
    two = load_metric("classification_report").from_tables(tables[:, 1:, 1:], np.ones(2, bool))
    assert np.isnan(two["npv"]).all() and (two["specificity"] == 0).all()


def test_published_view_predictions(shared):
    """Compare five metrics of the published TMED-2 view predictions with recorded bootstrap means."""
    base = shared / "golden" / "reference_eval"
    views = ["A2C", "A3C", "A4C", "PSAX", "PLAX", "Other"]
    truth = pd.read_csv(shared / "data" / "splits" / "tmed2" / "per_image.csv")
    file = next((base / "inputs/example_predictions/TMED2/view").glob("*.csv"))
    rows = truth[truth["split"] == "test"].merge(pd.read_csv(file), on="query_key", validate="1:1")
    label = rows["view"].where(rows["view"].isin(views), "Other").map(views.index)
    table = rows[[f"prob_{view}" for view in views]].to_numpy()
    found = CLASSIFICATION(label.to_numpy(), table / table.sum(axis=1, keepdims=True))
    on_record = {"accuracy": 0.0611, "balanced_accuracy": 0.1169, "brier": 0.8341, "nll": 1.7942, "ece": 0.1067}
    assert len(rows) == 3602
    for key, value in on_record.items():
        assert found[key] == pytest.approx(value, rel=0.005), key


def test_gap_against_scikit_learn():
    rng = np.random.default_rng(4)
    truth, guess = rng.integers(0, 3, 120), rng.integers(0, 3, 120)
    group = rng.choice(["a", "b", "c"], 120)
    for metric, formula in {
        "mae": sk.mean_absolute_error,
        "rmse": sk.root_mean_squared_error,
        "r2": sk.r2_score,
        "accuracy": sk.accuracy_score,
        "balanced_accuracy": sk.balanced_accuracy_score,
        "f1_macro": lambda t, g: sk.f1_score(t, g, average="macro"),
    }.items():
        found = GAP(truth, guess, group, metric)
        expected = {name: formula(truth[group == name], guess[group == name]) for name in "abc"}
        assert found["values"] == pytest.approx(expected)
        assert found["subgroup_gap"] == pytest.approx(max(expected.values()) - min(expected.values()))
        worst = (max if metric in ("mae", "rmse") else min)(expected, key=expected.get)
        assert found["worst_group"] == worst


def test_gap_counts_patients_and_names_small_groups():
    groups, patients = ["F"] * 20 + ["M"] * 20 + ["X"] * 20, [f"p{i // 2}" for i in range(40)] + ["q"] * 20
    found = GAP(np.zeros(60), np.repeat([1.0, 3.0, 9.0], 20), groups, patients=patients)
    assert (found["subgroup_gap"], found["worst_group"]) == (2.0, "M")
    assert found["rows"] == {"F": 20, "M": 20} and found["patients"] == {"F": 10, "M": 10}
    assert found["left_out"] == {"X": 1}
    alone = GAP(np.zeros(60), np.ones(60), groups, patients=patients, min_patients=11)
    assert np.isnan(alone["subgroup_gap"]) and alone["worst_group"] is None and len(alone["left_out"]) == 3


cells = st.one_of(
    st.floats(), st.integers(-3, 3), st.none(), st.text(max_size=2), st.lists(st.floats(0, 1), max_size=3)
)


@pytest.mark.filterwarnings("ignore:overflow encountered")  # Values that no measurement has.
@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    references=st.lists(cells, max_size=5), predictions=st.lists(cells, max_size=5), groups=st.lists(cells, max_size=5)
)
def test_any_lists_are_scored_or_refused(references, predictions, groups):
    for compute in (REGRESSION, CLASSIFICATION, lambda r, p: GAP(r, p, groups)):
        try:
            found = compute(references, predictions)
        except ValueError as error:
            assert str(error)
        else:
            assert found and len(references) == len(predictions) > 0


def test_group_of_one_class_is_not_a_hundred_percent():
    found = GAP(
        [0, 0, 1, 1, 0, 0], [0, 0, 1, 0, 0, 0], ["F", "F", "M", "M", "M", "M"], metric="f1_macro", min_patients=1
    )
    assert np.isnan(found["values"]["F"]) and found["values"]["M"] < 1 and np.isnan(found["subgroup_gap"])
