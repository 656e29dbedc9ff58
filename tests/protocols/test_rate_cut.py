"""Test the rate cut: a quantile as threshold, predictions as frequent as the classes, and no use of the test split."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import label_binarize

from cardiobench.data.spec import Task
from cardiobench.protocols.base import HeldOut, ProtocolOutput, aggregate
from cardiobench.protocols.cut import ARGMAX, cut_by_validation, rate_cut
from cardiobench.protocols.grid_search.classifiers import classifier
from cardiobench.protocols.grid_search.folds import balanced_folds
from cardiobench.protocols.grid_search.search import flat_search, nested_search
from cardiobench.protocols.knn import NearestNeighbours
from cardiobench.protocols.probe import LinearProbe
from cardiobench.scoring.predictions import Predictions
from cardiobench.tasks.classes import most_probable
from tests.protocols.conftest import BINARY, task_data


def two(scores):
    return np.stack([1 - np.asarray(scores), scores], axis=1)


def test_two_class_threshold_is_rate_quantile():
    rng = np.random.default_rng(0)
    for share in (0.1, 0.3, 0.5, 0.9):
        labels, scores = (rng.random(200) < share).astype(int), rng.beta(2, 5, 200)
        threshold, rest = rate_cut(two(scores), labels)
        assert (scores >= threshold).sum() == labels.sum() and threshold + rest == 1
        order = np.sort(scores)[::-1]
        assert order[labels.sum() - 1] > threshold > order[labels.sum()]


@pytest.mark.parametrize(
    ("scores", "labels", "threshold"),
    [
        ([0.1, 0.2, 0.6, 0.8], [0, 0, 1, 1], 0.4),  # The midpoint of the second and third values.
        ([0.1, 0.2, 0.3, 0.8], [1, 0, 1, 1], 0.15),
        ([0.2, 0.2, 0.2, 0.2], [0, 0, 0, 1], 0.6),  # No positives: one is nearer to none than to all.
        ([0.0, 0.0, 1.0, 1.0], [0, 1, 0, 1], 0.5),
        ([0.4, 0.4, 0.4, 0.9], [0, 1, 0, 1], 0.65),  # One positive is nearer to two than four are.
    ],
)
def test_tied_probabilities_are_cut_once(scores, labels, threshold):
    assert rate_cut(two(scores), np.array(labels))[0] == pytest.approx(threshold)


def test_class_rates_match_the_labels():
    rng, shares = np.random.default_rng(1), np.array([0.5, 0.3, 0.12, 0.04, 0.04])
    labels = rng.choice(5, 400, p=shares)
    logits = rng.normal(size=(400, 5)) + 1.5 * label_binarize(labels, classes=range(5)) + 2 * rng.normal(size=5)
    table = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    weights, wanted = rate_cut(table, labels), np.bincount(labels)
    answered, plain = (np.bincount(t.argmax(axis=1), minlength=5) for t in (table * weights, table))
    assert np.abs(answered - wanted).max() <= 2 < np.abs(plain - wanted).max()
    assert weights.max() == 1 and (weights > 0).all()
    np.testing.assert_array_equal(rate_cut(np.eye(5)[labels], labels), 1)  # The rates are equal already.


@pytest.fixture
def binary():
    """Return 60 training, 60 validation and 40 test patients, one third of them ill."""
    rng = np.random.default_rng(2)
    ill = rng.random(160) < 0.33
    split = ["train"] * 60 + ["validation"] * 60 + ["test"] * 40
    return task_data(BINARY, rng.normal(size=(160, 5)) + ill[:, None], np.where(ill, "yes", "no"), split)


def held_out(data, values, indices):
    test = data.indices("test")
    return ProtocolOutput(test, np.full((len(test), 2), 0.5), {}, validation=HeldOut(indices, values))


def test_cut_uses_validation_and_is_stamped(binary):
    validation = binary.indices("validation")
    labels = binary.labels[validation]
    scores = np.linspace(0.01, 0.4, len(validation))
    output = cut_by_validation(binary, held_out(binary, two(scores), validation))
    assert output.details["cut"] == {f"p_{BINARY.classes[1]} from": pytest.approx(output.cut[0])}
    assert (scores >= output.cut[0]).sum() == labels.sum()
    changed = replace(binary, rows=binary.rows.copy())
    test = changed.indices("test")
    changed.rows.loc[test, BINARY.target] = BINARY.classes[0]
    np.testing.assert_array_equal(
        cut_by_validation(changed, held_out(changed, two(scores), validation)).cut, output.cut
    )
    low, high = output.cut[0] - 1e-9, output.cut[0] + 1e-9
    asked = replace(output, indices=test[:2], values=two([low, high]))
    frame = aggregate(binary, asked)
    assert list(frame["y_pred"]) == [BINARY.classes[0], BINARY.classes[1]]
    np.testing.assert_allclose(frame[f"p_{BINARY.classes[1]}"], [low, high])


def test_few_validation_patients_give_argmax(binary, regression):
    plain = replace(held_out(binary, None, None), validation=None)
    assert cut_by_validation(binary, plain).details["cut"] == ARGMAX and cut_by_validation(binary, plain).cut is None
    few = held_out(binary, two([0.1, 0.2, 0.3]), binary.indices("validation")[:3])
    assert cut_by_validation(binary, few).details["cut"] == f"{ARGMAX}: fewer than 50 patients to choose a cut on"
    both = binary.indices("train", "validation")
    inner = replace(few, inner=HeldOut(both, two(np.linspace(0.1, 0.6, len(both)))))
    assert cut_by_validation(binary, inner).details["cut_chosen_on"] == "120 patients of inner folds"
    assert "cut" not in cut_by_validation(regression, replace(plain, values=np.zeros(3))).details


@pytest.mark.parametrize("protocol", [LinearProbe(), NearestNeighbours()], ids=lambda one: one.name)
def test_few_validation_patients_use_inner_folds(binary, protocol):
    """Check that a patient's label does not affect its prediction, which comes from a model trained on other patients."""
    few = replace(binary, rows=binary.rows.assign(split=["train"] * 100 + ["validation"] * 20 + ["test"] * 40))
    fixed = replace(protocol, **({"penalties": (1.0,)} if protocol.name == "probe" else {"neighbours": (5,)}))
    before = fixed.predict(few, None, "").inner
    assert sorted(before.indices) == list(range(120))
    rows = few.rows.copy()
    rows.loc[7, BINARY.target] = "no" if rows.loc[7, BINARY.target] == "yes" else "yes"
    after = fixed.predict(replace(few, rows=rows), None, "").inner
    own = before.indices == 7
    np.testing.assert_array_equal(before.values[own], after.values[own])
    assert not np.array_equal(before.values[~own], after.values[~own])


def test_fitted_probe_equals_protocol(binary):
    own = cut_by_validation(binary, LinearProbe().predict(binary, None, ""))
    fitted = LinearProbe().fit(binary).predict(binary)
    assert own.cut is not None and np.array_equal(fitted.cut, own.cut) and fitted.details == own.details
    assert aggregate(binary, fitted).equals(aggregate(binary, own))
    assert cut_by_validation(binary, fitted).details == own.details, "a cut chosen elsewhere keeps its description"


def test_fold_cuts_use_inner_folds():
    rng = np.random.default_rng(0)
    labels, patients = (rng.random(120) < 0.3).astype(int), np.arange(120)
    features = rng.normal(size=(120, 3)) + labels[:, None]
    outer, module = balanced_folds(labels, patients, 4, 0), classifier("logistic")
    found = nested_search(module, features, labels, patients, outer, [{"C": 1.0}], inner=3, seed=0)
    assert found.cuts.shape == (4, 2)
    for (train, _), weights in zip(outer, found.cuts, strict=True):
        inner = [(train[a], train[b]) for a, b in balanced_folds(labels[train], patients[train], 3, 0)]
        tables = module.predict_proba_grid(features, labels, inner, [{"C": 1.0}], 0)
        held = np.concatenate([b for _, b in inner])
        expected = rate_cut(np.concatenate([t[0] for t in tables]), labels[held])
        np.testing.assert_allclose(weights, expected, atol=1e-4)
    assert flat_search(module, features, labels, outer, [{"C": 1.0}], seed=0).cuts is None


def test_table_decisions_equal_protocol():
    """Check that ties give the positive of two classes, or the first of several."""
    for task, tie in (
        (BINARY, BINARY.classes[1]),
        (Task("t/v", "multiclass", "v", ("f1_macro",), ("a", "b", "c")), "a"),
    ):
        references = pd.DataFrame({"id": ["u"], "patient_id": ["p"], "split": ["test"], "y_true": [task.classes[0]]})
        answers = pd.DataFrame({"id": ["u"], **{f"p_{name}": [1 / len(task.classes)] for name in task.classes}})
        assert Predictions.join(references, answers, task).frame["y_pred"].tolist() == [tie]


def test_rounding_differences_are_ties():
    """Check that recordings of .1, .6 and .8 and their complements average to one half, in a table and in a mean."""
    ill = np.array([0.1, 0.6, 0.8, 0.35])
    means = np.stack([(1 - ill[:3]).mean(keepdims=True), ill[:3].mean(keepdims=True)], axis=1)
    for odd in (means, np.array([[0.5 + 1e-16, 0.5 - 1e-16]]), np.array([[0.5 + 2e-16, 0.5]])):
        assert most_probable(odd).tolist() == [1]
    assert most_probable(np.array([[0.2, 0.4 - 1e-16, 0.4]])).tolist() == [1]
    assert most_probable(np.array([[0.6, 0.4], [1e-9, 2e-9], [2e-9, 1e-9]])).tolist() == [0, 1, 0]
