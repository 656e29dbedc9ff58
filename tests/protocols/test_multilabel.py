"""Compare probe and neighbours on multilabel tasks with scikit-learn for each class."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from cardiobench.core.errors import BadModel, NotApplicable
from cardiobench.data.spec import Task
from cardiobench.protocols.base import aggregate
from cardiobench.protocols.knn import NearestNeighbours
from cardiobench.protocols.linear.model import fit_linear_models
from cardiobench.protocols.linear.path import SEARCH_TOLERANCE
from cardiobench.protocols.native import check_outputs
from cardiobench.protocols.patient_pool import PatientPool
from cardiobench.protocols.probe import LinearProbe
from cardiobench.protocols.zero_shot import ZeroShot
from cardiobench.scoring.metrics import macro_auroc
from cardiobench.tasks.labels import label_set

from .conftest import task_data

CLASSES = ("A", "B", "C")
TASK = Task("toy/findings", "multilabel", "findings", ("auroc_macro",), CLASSES, partially_labelled=True)


def labelled(n=240, unmeasured=0.15, seed=0, **changes):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 8))
    truth = (features[:, :3] + 0.5 * rng.normal(size=(n, 3)) > (0, 0.5, 1)).astype(float)
    truth[rng.random(truth.shape) < unmeasured] = np.nan
    names = np.array(CLASSES)
    cells = [label_set(names[row == 1], CLASSES, names[np.isnan(row)]) for row in truth]
    split = ["train"] * (n // 2) + ["validation"] * (n // 6) + ["test"] * (n - n // 2 - n // 6)
    return task_data(replace(TASK, **changes), features, cells, split), truth


@pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0])
def test_classes_equal_scikit_learn_on_measured_rows(penalty):
    data, truth = labelled()
    train, test = data.indices("train"), data.indices("test")
    (model,) = fit_linear_models(data.features, train, data.labels[train], [penalty], classes=3, tolerance=1e-10)
    found = model.predict(data.features, test)
    features = data.features.astype(np.float64)  # With float32, scikit-learn stops at rounding errors.
    scaler = StandardScaler().fit(features[train])
    for code in range(3):
        rows = train[~np.isnan(truth[train, code])]
        peer = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=1000)
        peer.fit(scaler.transform(features[rows]), truth[rows, code])
        expected = peer.predict_proba(scaler.transform(features[test]))[:, 1]
        np.testing.assert_allclose(found[:, code], expected, atol=1e-5)


def test_class_without_both_answers_gets_its_share():
    data, _ = labelled()
    train = data.indices("train")
    labels = data.labels[train].copy()
    labels[:, 0], labels[:, 1], labels[:, 2] = 1, 0, np.nan
    labels[:, 2] = np.where(np.arange(len(train)) % 2, 1, 0)
    never = np.column_stack([labels, np.full(len(train), np.nan)])
    (model,) = fit_linear_models(data.features, train, never, [1.0], classes=4)
    found = model.predict(data.features, train)
    assert (found[:, 0] == 1).all() and (found[:, 1] == 0).all() and (found[:, 3] == 0.5).all()
    assert np.ptp(found[:, 2]) > 0


def test_probe_chooses_one_penalty_by_macro_auroc_on_validation():
    data, truth = labelled(n=900)
    probe = LinearProbe(penalties=(0.1, 1e6))
    output = probe.predict(data, None, "")
    assert output.details["penalty"] == 0.1 and output.details["penalty_chosen_on"] == "validation"
    assert output.details["class_weight"] is None
    known = ~np.isnan(truth[output.indices])
    areas = [roc_auc_score(truth[output.indices][known[:, c], c], output.values[known[:, c], c]) for c in range(3)]
    assert np.mean(areas) > 0.9
    assert set(output.values.sum(axis=1).round(6)) != {1.0}, "classes are independent"


def test_search_ends_early_with_the_choice_of_every_penalty_in_float64():
    data, truth = labelled(n=900)
    noise = np.random.default_rng(1).normal(size=(900, 60))
    data = replace(data, embeddings=replace(data.embeddings, vectors=np.column_stack([data.features, noise])))
    probe, (train, valid, test) = LinearProbe(), (data.indices(split) for split in ("train", "validation", "test"))
    double = 0.99 * SEARCH_TOLERANCE  # In float64, it is as near the minimum as the search.
    every = fit_linear_models(data.features, train, data.labels[train], probe.penalties, classes=3, tolerance=double)
    losses = np.array([1 - macro_auroc(truth[valid], model.predict(data.features, valid)) for model in every])
    output = probe.predict(data, None, "")
    best = probe.penalties[probe._stiffest_of_best(losses)]
    assert output.details["penalty"] == best and len(output.details["penalties_tried"]) < len(losses)
    both = data.indices("train", "validation")
    (model,) = fit_linear_models(data.features, both, data.labels[both], [best], classes=3, tolerance=1e-10)
    expected = macro_auroc(truth[test], model.predict(data.features, test))
    assert macro_auroc(truth[test], output.values) == pytest.approx(expected, abs=1e-4)


def test_neighbours_are_counted_on_measured_labels():
    data, truth = labelled(n=120)
    output = NearestNeighbours(neighbours=(5,)).predict(data, None, "")
    train, test = data.indices("train", "validation"), data.indices("test")
    scaler = StandardScaler().fit(data.features[train])
    peer = NearestNeighbors(n_neighbors=5, metric="cosine").fit(scaler.transform(data.features[train]))
    rows = train[peer.kneighbors(scaler.transform(data.features[test]), return_distance=False)]
    measured = (~np.isnan(truth[rows])).sum(axis=1)
    np.testing.assert_allclose(output.values, np.nansum(truth[rows], axis=1) / np.maximum(measured, 1))


def test_recordings_of_a_unit_are_averaged_and_the_cell_follows():
    data, _ = labelled(n=12, unmeasured=0, unit_column="study")
    data = replace(data, rows=data.rows.assign(study=[f"s{row // 2}" for row in range(12)]))
    output = LinearProbe(penalties=(1.0,)).predict(
        replace(data, rows=data.rows.assign(split=["train"] * 8 + ["test"] * 4)), None, ""
    )
    frame = aggregate(data, output)
    assert frame["id"].tolist() == ["s4", "s5"]
    np.testing.assert_allclose(frame["p_B"], output.values[:, 1].reshape(2, 2).mean(axis=1))
    for row in frame.itertuples():
        assert row.y_pred == label_set([name for name in CLASSES if getattr(row, f"p_{name}") >= 0.5], CLASSES)


class Directions:
    """Model that puts the prompts of each class on an axis, and one prompt between two of them."""

    name, logit_scale = "toy", 10.0

    def encode_text(self, texts):
        axes = {"is A": [1, 0, 0], "is B": [0, 1, 0], "is C": [0, 0, 1], "is A or B": [2**-0.5, 2**-0.5, 0]}
        return torch.tensor([[*axes[text], *[0] * 5] for text in texts], dtype=torch.float32)

    transform = encode = to = encode_text
    modalities = dim = pooling = sampling = revision = preprocessing = warnings = None


def test_score_of_each_label_is_its_mean_cosine_by_zero_shot(tmp_path):
    """Compare with MERL's score: scikit-learn's AUROC of the cosine for each class independently."""
    data, truth = labelled(n=120, unmeasured=0)
    (tmp_path / "p.json").write_text(
        json.dumps({"version": 1, "findings": {"A": ["is A"], "B": ["is B", "is A or B"], "C": ["is C"]}})
    )
    data = replace(data, prompts=tmp_path / "p.json")
    output = ZeroShot().predict(data, Directions(), "")
    assert ZeroShot().variants(data.task) == ("",) and output.details["prompt_set"] == "1"
    test = data.indices("test")
    unit = data.features[test] / np.linalg.norm(data.features[test], axis=1, keepdims=True)
    cosines = np.stack([unit[:, 0], (unit[:, 1] + (unit[:, 0] + unit[:, 1]) * 2**-0.5) / 2, unit[:, 2]], axis=1)
    np.testing.assert_allclose(output.values, (1 + cosines) / 2, atol=1e-6)
    for code in range(3):
        wanted = roc_auc_score(truth[test, code], cosines[:, code])
        assert roc_auc_score(truth[test, code], output.values[:, code]) == pytest.approx(wanted)


def test_missing_training_data_is_reported():
    data, _ = labelled(n=60)
    rows = data.rows.assign(findings="A")
    with pytest.raises(
        NotApplicable, match="no class that is present in some of its 30 training rows here and absent in others"
    ):
        LinearProbe().predict(replace(data, rows=rows), None, "")


def test_patients_are_drawn_of_each_class():
    data, truth = labelled(n=240)
    pool, rng = data.indices("train", "validation"), np.random.default_rng(0)
    patients = PatientPool(data, pool)
    assert patients.size == max((truth[pool] == 1).sum(axis=0))
    rows = patients.draw(4, rng)
    assert ((truth[rows] == 1).sum(axis=0) >= 4).all() and 4 <= len(rows) <= 12
    every = patients.draw(240, rng)
    assert set(every) == set(pool[(truth[pool] == 1).any(axis=1)])


def test_multilabel_heads_predict_each_class():
    outputs = np.array([[0.9, 0.8, 0.0]])
    assert check_outputs(outputs, TASK, "toy").tolist() == outputs.tolist()
    with pytest.raises(BadModel, match=r"of shape \(n, 3\)"):
        check_outputs(outputs[:, :2], TASK, "toy")
