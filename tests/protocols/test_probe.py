"""Compare the linear probe with scikit-learn; test leakage."""

import dataclasses

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cardiobench.core.errors import NotApplicable
from cardiobench.protocols.probe import LinearProbe
from tests.protocols.conftest import BINARY, VIEWS, task_data


def test_regression_is_ridge_on_standardised_train_and_validation(regression):
    output = LinearProbe().predict(regression, None, "")
    both, test = regression.indices("train", "validation"), regression.indices("test")
    peer = make_pipeline(StandardScaler(), Ridge(alpha=output.details["penalty"]))
    peer.fit(regression.features[both], regression.labels[both])
    np.testing.assert_allclose(output.values, peer.predict(regression.features[test]), rtol=1e-6)
    # Noise of standard deviation 1 around a linear truth: the mean absolute error is sqrt(2 / pi) = 0.80.
    assert np.abs(output.values - regression.labels[test]).mean() < 1.1


def test_penalty_is_best_on_validation(regression):
    probe = LinearProbe(min_samples=0)
    chosen = probe.predict(regression, None, "").details["penalty"]
    train, validation = regression.indices("train"), regression.indices("validation")
    errors = {}
    for penalty in probe.penalties:
        peer = make_pipeline(StandardScaler(), Ridge(alpha=penalty)).fit(
            regression.features[train], regression.labels[train]
        )
        errors[penalty] = np.abs(peer.predict(regression.features[validation]) - regression.labels[validation]).mean()
    assert chosen == min(errors, key=errors.get)


def test_classification_is_logistic_regression(binary):
    output = LinearProbe().predict(binary, None, "")
    both, test = binary.indices("train", "validation"), binary.indices("test")
    peer = make_pipeline(
        StandardScaler(),
        LogisticRegression(C=1 / output.details["penalty"], class_weight="balanced", tol=1e-8, max_iter=5000),
    )
    peer.fit(binary.features[both], binary.labels[both])
    np.testing.assert_allclose(output.values, peer.predict_proba(binary.features[test]), atol=2e-3)


def test_strongest_of_equal_penalties_is_chosen():
    probe = LinearProbe(penalties=(0.1, 1.0, 10.0, 100.0))
    # A ten-thousandth of the largest penalty's loss is 0.00007: 0.1, 1 and 10 are equal, 100 is not.
    assert probe._stiffest_of_best(np.array([0.50000, 0.50001, 0.50006, 0.7])) == 2
    assert probe._stiffest_of_best(np.array([0.50000, 0.50001, 0.50008, 0.7])) == 1


def test_test_labels_change_nothing(regression, binary):
    for data in (regression, binary):
        before = LinearProbe().predict(data, None, "").values
        rows = data.rows.copy()
        is_test = rows["split"] == "test"
        rows.loc[is_test, data.task.target] = rows.loc[is_test, data.task.target].to_numpy()[::-1]
        after = LinearProbe().predict(dataclasses.replace(data, rows=rows), None, "").values
        np.testing.assert_array_equal(before, after)


def test_folds_without_validation_group_patients(binary, monkeypatch):
    rows = binary.rows.assign(split=binary.rows["split"].replace("validation", "train"))
    rows["patient_id"] = [f"p{n // 4}" for n in range(len(rows))]
    data = dataclasses.replace(binary, rows=rows)
    for fit, held in LinearProbe()._folds(data):
        assert not set(data.patients[fit]) & set(data.patients[held])
    assert LinearProbe().predict(data, None, "").values.shape == (50, 2)


def test_untrained_class_has_no_probability():
    rng = np.random.default_rng(3)
    labels = ["A2C", "A4C"] * 20 + ["A2C", "A4C", "PLAX"] * 4
    data = task_data(VIEWS, rng.normal(size=(52, 3)), labels, ["train"] * 40 + ["test"] * 12)
    values = LinearProbe().predict(data, None, "").values
    assert (values[:, 2] == 0).all()
    np.testing.assert_allclose(values.sum(axis=1), 1)


def test_constant_embeddings_give_one_answer():
    data = task_data(BINARY, np.ones((30, 1)), ["no", "yes", "no"] * 10, ["train"] * 20 + ["test"] * 10)
    values = LinearProbe().predict(data, None, "").values
    np.testing.assert_allclose(values, 0.5, atol=1e-3)
    assert np.ptp(values[:, 1]) == 0


@pytest.mark.parametrize(
    "split, labels, message", [("test", "no", "no training rows"), ("train", "no", "all 9 training rows .* are 'no'")]
)
def test_unlearnable_tasks_are_not_applicable(split, labels, message):
    data = task_data(BINARY, np.eye(10), [labels] * 10, [split] * 9 + ["test"])
    with pytest.raises(NotApplicable, match=message):
        LinearProbe().predict(data, None, "")
