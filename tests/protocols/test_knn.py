"""Nearest neighbours against scikit-learn, and what they may not look at."""

import dataclasses

import numpy as np
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from cardiobench.protocols.knn import NearestNeighbours, nearest
from tests.protocols.conftest import REGRESSION, task_data


def peer(kind, data, k):
    known, test = data.lines("train", "validation"), data.lines("test")
    scaler = StandardScaler().fit(data.features[known])
    model = kind(n_neighbors=k, metric="cosine").fit(scaler.transform(data.features[known]), data.labels[known])
    return model, scaler.transform(data.features[test])


def test_regression_and_classification_are_scikit_learns(regression, binary):
    output = NearestNeighbours().predict(regression, None, "")
    model, asked = peer(KNeighborsRegressor, regression, output.details["k"])
    np.testing.assert_allclose(output.values, model.predict(asked))
    output = NearestNeighbours().predict(binary, None, "")
    model, asked = peer(KNeighborsClassifier, binary, output.details["k"])
    np.testing.assert_allclose(output.values, model.predict_proba(asked))


def test_equal_similarities_go_by_position():
    known = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(nearest(known, np.array([[1.0, 0.0]]), 3), [[0, 2, 3]])


def test_test_labels_change_nothing(binary):
    rows = binary.rows.assign(**{"as": np.where(binary.rows["split"] == "test", "yes", binary.rows["as"])})
    changed = dataclasses.replace(binary, rows=rows)
    np.testing.assert_array_equal(
        NearestNeighbours().predict(binary, None, "").values, NearestNeighbours().predict(changed, None, "").values
    )


def test_k_is_chosen_without_the_patients_own_records():
    """Four identical records a patient with labels that mean nothing else: k = 1 is perfect only if a patient is split."""
    rng = np.random.default_rng(0)
    features = np.repeat(rng.normal(size=(40, 8)), 4, axis=0)
    labels = np.repeat(rng.normal(size=40), 4)
    patients = [f"p{n // 4}" for n in range(160)]
    data = task_data(REGRESSION, features, labels, ["train"] * 120 + ["test"] * 40, patients)
    assert NearestNeighbours().predict(data, None, "").details["k"] > 4
