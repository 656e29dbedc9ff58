"""Test a model's own heads: their inputs, the use of their predictions, and refusals."""

import dataclasses

import numpy as np
import pytest

from cardiobench.core.errors import BadModel, NotApplicable
from cardiobench.data.spec import VIEWS, Task
from cardiobench.protocols.base import aggregate
from cardiobench.protocols.native import NativePrediction
from tests.protocols.conftest import BINARY, REGRESSION, task_data

ALL_VIEWS = Task("toy/view", "multiclass", "view", ("f1_macro",), VIEWS)


class Heads:
    """Model whose heads predict the mean of one vector component over all parts of a unit."""

    name, modalities, pooling, dim = "toy", ("echo",), "mean", 2
    revision, sampling, preprocessing, loaded_by, warnings = "0", None, {}, "", ()
    native = ("ef", "as", "view")

    def __init__(self):
        self.seen = []

    def transform(self, recording): ...

    def encode(self, parts): ...

    def to(self, device):
        return self

    def predict_native(self, target, units):
        self.seen.append([vectors.shape for vectors in units])
        means = np.array([vectors[:, 0].mean() for vectors in units])
        if target == "view":
            return np.eye(len(VIEWS))[means.astype(int)]
        return means


def test_unit_gets_all_parts_and_one_prediction():
    task = dataclasses.replace(REGRESSION, unit_column="patient_id")
    features = [np.full((3, 2), 40.0), np.full((1, 2), 60.0), np.full((2, 2), 70.0), np.full((5, 2), 10.0)]
    data = task_data(task, features, [45.0, 45.0, 70.0, 10.0], ["test"] * 3 + ["train"], patients=["a", "a", "b", "c"])
    heads = Heads()
    output = NativePrediction().predict(data, heads, "")
    assert heads.seen == [[(4, 2), (2, 2)]], "the train recording is not predicted"
    got = aggregate(data, output)
    # Three parts of 40 and one of 60 have the mean 45 (a mean of recordings would be 50).
    assert dict(zip(got["id"], got["y_pred"], strict=True)) == {"a": 45.0, "b": 70.0}


def test_two_classes_and_views():
    data = task_data(BINARY, [[0.2, 0], [0.9, 0]], ["no", "yes"], ["test"] * 2)
    np.testing.assert_allclose(
        NativePrediction().predict(data, Heads(), "").values, [[0.8, 0.2], [0.1, 0.9]], rtol=1e-6
    )
    data = task_data(ALL_VIEWS, [[3.0, 0], [5.0, 0]], ["PSAX", "Other"], ["test"] * 2)
    assert aggregate(data, NativePrediction().predict(data, Heads(), ""))["y_pred"].tolist() == ["PSAX", "Other"]


def test_tasks_without_a_head_give_a_reason():
    data = task_data(dataclasses.replace(REGRESSION, target="lvidd"), [[1.0, 0]], [4.0], ["test"])
    with pytest.raises(NotApplicable, match=r"do not predict 'lvidd'.*they predict ef, as, view"):
        NativePrediction().predict(data, Heads(), "")

    blind = type("Blind", (), {k: v for k, v in vars(Heads).items() if k != "predict_native" and k[:2] != "__"})()
    with pytest.raises(NotApplicable, match="toy has no trained heads of its own"):
        NativePrediction().predict(data, blind, "")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (np.array([1.2]), r"toy gave numbers outside \[0, 1\]"),
        (np.array([[0.5, 0.5]]), r"toy gave shape \(1, 2\) for .*; expected finite numbers of shape \(n,\)\. Correct"),
        (np.array([np.nan]), "toy gave numbers that are not finite"),
    ],
)
def test_invalid_predictions_are_refused(answer, said, monkeypatch):
    monkeypatch.setattr(Heads, "predict_native", lambda self, target, units: answer)
    data = task_data(BINARY, [[1.0, 0]], ["yes"], ["test"])
    with pytest.raises(BadModel, match=said):
        NativePrediction().predict(data, Heads(), "")
