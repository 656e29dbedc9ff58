"""Compare nearest neighbours with scikit-learn; test leakage."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import f1_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.protocols import nearest as blocks
from cardiobench.protocols.features import UnitRows
from cardiobench.protocols.knn import NearestNeighbours, whole_patients
from cardiobench.protocols.nearest import nearest
from tests.protocols.conftest import BINARY, REGRESSION, task_data


def peer(kind, data, k):
    known, test = data.indices("train", "validation"), data.indices("test")
    scaler = StandardScaler().fit(data.features[known])
    model = kind(n_neighbors=k, metric="cosine").fit(scaler.transform(data.features[known]), data.labels[known])
    return model, scaler.transform(data.features[test])


def test_regression_and_classification_equal_scikit_learn(regression, binary):
    output = NearestNeighbours().predict(regression, None, "")
    model, asked = peer(KNeighborsRegressor, regression, output.details["k"])
    np.testing.assert_allclose(output.values, model.predict(asked))
    output = NearestNeighbours().predict(binary, None, "")
    model, asked = peer(KNeighborsClassifier, binary, output.details["k"])
    np.testing.assert_allclose(output.values, model.predict_proba(asked))


def rows(features, indices=None):
    return UnitRows(features, np.arange(len(features)) if indices is None else indices)


@pytest.fixture(params=["one block", "many blocks"])
def block_sizes(request, monkeypatch):
    if request.param == "many blocks":
        for name, size in {"QUERY_ROWS": 7, "TRAIN_ROWS": 16, "FIRST_ROWS": 5, "HELD": 0, "SETTLED": 99}.items():
            monkeypatch.setattr(blocks, name, size)


def test_equal_similarities_keep_order(block_sizes):
    train = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(nearest(rows(train), rows(np.array([[1.0, 0.0]])), 3), [[0, 2, 3]])


@pytest.mark.parametrize("dim", [7, 384, 1536])
def test_equal_vectors_tie_in_any_sum_order(block_sizes, dim):
    """Test equal vectors, whose products differ in the last digit with their tile of the matrix product."""
    vector = np.random.default_rng(0).normal(size=dim).astype(np.float32)
    found = nearest(rows(np.tile(vector, (130, 1))), rows(np.tile(vector, (3, 1))), 21)
    np.testing.assert_array_equal(found, np.tile(np.arange(21), (3, 1)))


def test_neighbours_equal_a_float64_sort(block_sizes):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 16)).astype(np.float32)
    features[50:90] = features[10:50]  # Among equal vectors, the earlier ones are nearer.
    train, query = rng.permutation(300), np.arange(300, 400)
    unit = features.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    similarity = np.round(unit[query] @ unit[train].T, 12)
    for count in (1, 5, 300):
        expected = np.argsort(-similarity, axis=1, kind="stable")[:, :count]
        np.testing.assert_array_equal(nearest(rows(features, train), rows(features, query), count), expected)


def test_gpu_finds_the_same_neighbours():
    torch = pytest.importorskip("torch")
    features = np.random.default_rng(0).normal(size=(9000, 64)).astype(np.float32)
    train, query = rows(features, np.arange(8000)), rows(features, np.arange(8000, 9000))
    device = "cuda" if torch.cuda.is_available() else "cpu"  # Without a GPU, the same torch code runs on the CPU.
    block = query.take(slice(None), np.float32) * np.float32(1 / blocks.GRID)
    candidates = blocks._on_gpu(train, block, 29, device), blocks._on_cpu(train, block, 29)
    # Sums in float32 differ between kernels and so does the order of candidates, until it is computed in float64.
    found, expected = (blocks._settled(train.take, query, slice(0, 1000), one)[:, :21] for one in candidates)
    np.testing.assert_array_equal(found, expected)


def test_device_of_the_run_is_for_large_searches(binary, monkeypatch):
    pytest.importorskip("torch")
    from cardiobench.models import device

    asked = []
    monkeypatch.setattr(device, "choose_device", lambda *both: asked.append(both) or SimpleNamespace(type="cpu"))
    knn = NearestNeighbours.from_config(RunConfig(device="cuda"))
    small = knn.predict(binary, None, "").values
    assert not asked, "a small search is not worth the transfer"
    monkeypatch.setattr(blocks, "GPU_WORK", 1)
    np.testing.assert_array_equal(knn.predict(binary, None, "").values, small)
    assert set(asked) == {("cuda", "knn.device")}
    asked.clear()
    NearestNeighbours.from_config(RunConfig(device="cpu")).predict(binary, None, "")
    assert not asked


def test_more_neighbours_than_vectors_are_refused():
    with pytest.raises(ValueError, match="4 neighbours of 3 training vectors"):
        nearest(rows(np.eye(3)), rows(np.eye(3)), 4)


def test_patients_are_drawn_once():
    patients = np.repeat([f"p{n}" for n in range(50)], 4)
    kept = whole_patients(patients, 30, 0)
    assert len(kept) == 28 and (np.diff(kept) > 0).all()
    assert not set(patients[kept]) & set(np.delete(patients, kept))
    np.testing.assert_array_equal(whole_patients(patients, 200, 0), np.arange(200))
    assert set(kept) != set(whole_patients(patients, 30, 1))


def test_subsampling_for_k_and_neighbours_is_stamped(binary):
    every = NearestNeighbours().predict(binary, None, "").details
    assert set(every) == {"k", "from"}
    output = NearestNeighbours(max_queries=40).predict(binary, None, "")
    assert output.details["k_chosen_on"] == "40 of 110 recordings, all of 40 patients drawn with seed 0"
    model, asked = peer(KNeighborsClassifier, binary, output.details["k"])
    np.testing.assert_allclose(output.values, model.predict_proba(asked))  # The neighbours still come from all rows.
    details = NearestNeighbours(max_train=60).predict(binary, None, "").details
    assert details["neighbours_among"] == "60 of 110 recordings, all of 60 patients drawn with seed 0"


def test_test_labels_change_nothing(binary):
    rows = binary.rows.assign(**{"as": np.where(binary.rows["split"] == "test", "yes", binary.rows["as"])})
    changed = dataclasses.replace(binary, rows=rows)
    np.testing.assert_array_equal(
        NearestNeighbours().predict(binary, None, "").values, NearestNeighbours().predict(changed, None, "").values
    )


def test_k_is_chosen_without_own_records():
    """Test four identical records per patient with random labels: k = 1 is perfect only if a patient is split between folds."""
    rng = np.random.default_rng(0)
    features = np.repeat(rng.normal(size=(40, 8)), 4, axis=0)
    labels = np.repeat(rng.normal(size=40), 4)
    patients = [f"p{n // 4}" for n in range(160)]
    data = task_data(REGRESSION, features, labels, ["train"] * 120 + ["test"] * 40, patients)
    assert NearestNeighbours().predict(data, None, "").details["k"] > 4


@pytest.mark.parametrize(
    "split, labels, message", [("test", "no", "no training rows"), ("train", "no", "all 9 training rows .* are 'no'")]
)
def test_tasks_refused_by_the_probe_are_refused_by_knn(split, labels, message):
    data = task_data(BINARY, np.eye(10), [labels] * 10, [split] * 9 + ["test"])
    with pytest.raises(NotApplicable, match=message):
        NearestNeighbours().predict(data, None, "")


@pytest.mark.parametrize("kind", ["regression", "binary"])
def test_k_equals_scikit_learn_in_same_folds(request, kind):
    """Check five folds that keep patients together, each standardised separately."""
    data = request.getfixturevalue(kind)
    rows = data.rows.assign(patient_id=[f"p{number // 2 % 37}" for number in range(len(data.rows))])
    data = dataclasses.replace(data, rows=rows)
    known = data.indices("train", "validation")
    x, y, patients = data.features[known].astype(float), data.labels[known], data.patients[known]
    losses = {}
    model = KNeighborsClassifier if data.task.classes else KNeighborsRegressor
    for k in NearestNeighbours().neighbours:
        peer = make_pipeline(StandardScaler(), model(n_neighbors=k, metric="cosine"))
        answers = cross_val_predict(peer, x, y, groups=patients, cv=GroupKFold(5))
        losses[k] = -f1_score(y, answers, average="macro") if data.task.classes else np.abs(answers - y).mean()
    output = NearestNeighbours().predict(data, None, "")
    assert output.details["k"] == min(losses, key=losses.get)
    assert len(set(losses.values())) > 3, "different values of k"
