"""Test answers outside the classes of a task: wrong for every class, whatever gave them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss, confusion_matrix, f1_score, matthews_corrcoef, recall_score, roc_auc_score

from cardiobench.core.errors import BadPredictions
from cardiobench.data import catalog
from cardiobench.data.spec import VIEWS, Task
from cardiobench.metrics.load import load_metric
from cardiobench.protocols.base import aggregate
from cardiobench.protocols.native import NativePrediction, check_outputs
from cardiobench.report.plots.predictions import classification_figure, operating_point
from cardiobench.results.context import ResultContext
from cardiobench.scoring.compare import compare
from cardiobench.scoring.predictions import Predictions, read_predictions
from cardiobench.scoring.score import score
from tests.protocols.conftest import task_data
from tests.protocols.test_native import Heads

_VIEW = catalog.task("hmc_qu/view")
_FIVE = tuple(name for name in VIEWS if name != "Other")
# As the task of the papers' extension, which may not be installed.
NAMED = replace(_VIEW, name="hmc_qu/view_named", classes=_FIVE, where={**_VIEW.where, "view": _FIVE})
BINARY = Task("toy/sick", "binary", "sick", ("f1_macro",), ("well", "sick"))
CONTEXT = ResultContext(protocol="native", resamples=200)


def references(task, labels, patients=None):
    ids = [f"r{n}" for n in range(len(labels))]
    who = ids if patients is None else patients
    return pd.DataFrame({"id": ids, "patient_id": who, "split": "test", "y_true": labels})


def scored(task, labels, answers, **more):
    table = references(task, labels)
    joined = Predictions.join(table, answers.assign(id=table["id"]), task)
    return score(joined, table, replace(CONTEXT, **more)), joined


def test_published_value_of_other_for_every_clip_of_a_view():
    """The published evaluator gives 0.5 if every A2C clip is called Other and every A4C clip is right."""
    labels = ["A2C"] * 30 + ["A4C"] * 30
    codes = [VIEWS.index("Other" if label == "A2C" else label) for label in labels]
    data = task_data(NAMED, [[float(code), 0] for code in codes], labels, ["test"] * 60)
    answers = aggregate(data, NativePrediction().predict(data, Heads(), ""))
    assert answers["y_pred"].tolist() == ["Other"] * 30 + ["A4C"] * 30
    published = f1_score(labels, answers["y_pred"], labels=["A2C", "A4C"], average="macro")
    result, _ = scored(NAMED, labels, answers.drop(columns="id"))
    assert result.score.value == published == 0.5
    assert result.overall["specificity"].value < 1
    auroc = result.overall["auroc"]
    assert (
        np.isnan(auroc.value) and auroc.reason == "undefined: 30 of 60 answers are outside the classes, more than 5 %"
    )
    assert any("30 of 60 answers are outside the classes and count as wrong (Other)" in one for one in result.warnings)


def test_answer_of_a_head_outside_the_five_views_stays_wrong():
    (task,) = (one for one in catalog.spec("hmc_qu").tasks if one.target == "view")
    outputs = check_outputs(np.eye(len(VIEWS))[[VIEWS.index("Other")] * 3], NAMED, "toy")
    assert NAMED.rules.unit_answers(outputs, NAMED)["y_pred"].tolist() == ["Other"] * 3
    assert task.classes == VIEWS, "the benchmark's own task has the class Other"


def test_probabilities_are_not_renormalised_and_the_head_decides():
    outputs = np.array([[0.3, 0.2, 0.1, 0.2, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.2, 0.4], [0.2, 0.1, 0.2, 0.2, 0.1, 0.2]])
    two = replace(NAMED, classes=("A2C", "A4C"), kind="binary")
    found = two.rules.unit_answers(check_outputs(outputs, two, "toy"), two)
    np.testing.assert_allclose(found[["p_A2C", "p_A4C"]], outputs[:, [0, 2]])
    np.testing.assert_allclose(found["p_Other"], [0.6, 0.8, 0.6])
    # The most probable single view decides, as in the head itself; of equal ones a class.
    assert found["y_pred"].tolist() == ["A2C", "Other", "A4C"]


def test_other_views_belong_to_a_class_of_this_name():
    some = replace(NAMED, classes=("A2C", "A4C", "Other"))
    outputs = np.array([[0.3, 0.3, 0.2, 0.1, 0.1, 0.0]])
    np.testing.assert_allclose(check_outputs(outputs, some, "toy"), [[0.3, 0.2, 0.5]])


@pytest.mark.parametrize("outside", [0, 2, 40])
@pytest.mark.parametrize("task", [BINARY, NAMED], ids=["binary", "views"])
def test_numbers_equal_scikit_learn(task, outside):
    rng = np.random.default_rng(outside)
    names = list(task.classes)
    labels = rng.choice(names, 100)
    table = rng.dirichlet(np.ones(len(names) + 1) / 2, 100)
    table[:, -1] /= 4
    table /= table.sum(axis=1, keepdims=True)
    wrong = rng.permutation(100) < outside
    said = np.where(wrong, "Other", np.array(names)[table[:, :-1].argmax(axis=1)])
    answers = pd.DataFrame(table, columns=[f"p_{name}" for name in (*names, "Other")]).assign(y_pred=said)
    result, joined = scored(task, labels, answers)
    numbers = {key: one.value for key, one in result.overall.items()} | dict(result.further)
    assert result.score.value == pytest.approx(f1_score(labels, said, labels=names, average="macro"), abs=1e-12)
    counts = confusion_matrix(labels, said, labels=[*names, "Other"])[:-1]
    assert numbers["accuracy"] == pytest.approx(np.mean(labels == said))
    recalls = recall_score(labels, said, labels=names, average=None, zero_division=0)
    assert numbers["balanced_accuracy"] == pytest.approx(recalls.mean())
    report = load_metric("classification_report")
    assert report.value(joined.sample())["mcc"] == pytest.approx(matthews_corrcoef(labels, said))
    if task is BINARY:
        assert (numbers["specificity"], numbers["sensitivity"]) == pytest.approx(tuple(recalls))
        assert numbers["ppv"] == pytest.approx(counts[1, 1] / counts[:, 1].sum())
    if outside > 5:
        assert np.isnan(numbers["auroc"]) and np.isnan(numbers["brier"])
        assert result.verdict.statistic == "f1_macro"
        return
    truth = np.stack([labels == name for name in names], axis=1)
    rated = [1] if task is BINARY else range(len(names))
    areas = [roc_auc_score(truth[:, code], table[:, code]) for code in rated]
    assert numbers["auroc"] == pytest.approx(np.mean(areas), abs=1e-12), "probabilities as given"
    if task is BINARY:
        both = [brier_score_loss(truth[:, code], table[:, code]) for code in (0, 1)]
        assert numbers["brier"] == pytest.approx(np.mean(both), abs=1e-12)


def test_limit_of_outside_answers_is_five_percent():
    labels = ["well", "sick"] * 50
    for count, defined in ((5, True), (6, False)):
        said = ["Other"] * count + labels[count:]
        answers = pd.DataFrame({"y_pred": said, "p_well": 0.4, "p_sick": 0.5, "p_Other": 0.1})
        result, _ = scored(BINARY, labels, answers)
        assert np.isfinite(result.overall["auroc"].value) == defined


def test_files_have_outside_answers_and_refuse_other_names(tmp_path):
    labels = ["well", "sick"] * 20
    ids = [f"r{n}" for n in range(40)]
    table = pd.DataFrame({"id": ids, "y_pred": ["Other", *labels[1:]]})
    read = read_predictions(table, BINARY)
    result, _ = scored(BINARY, labels, read.drop(columns="id"))
    assert result.overall["specificity"].value == 0.95
    with pytest.raises(BadPredictions, match=r"r0 \('maybe'\).*Write Other for an answer outside of them"):
        scored(BINARY, labels, pd.DataFrame({"y_pred": ["maybe", *labels[1:]]}))
    # With probabilities alone, the most probable answer may be outside.
    some = pd.DataFrame({"id": ids, "prob_sick": 0.2, "prob_other": 0.6})
    read = read_predictions(some, BINARY)
    assert read["p_well"].tolist() == pytest.approx([0.2] * 40)
    assert scored(BINARY, labels, read.drop(columns="id"))[1].frame["y_pred"].eq("Other").all()
    with pytest.raises(BadPredictions, match=r"do not sum to 1.*p_Other"):
        scored(BINARY, labels, pd.DataFrame({"p_well": [0.2] * 40, "p_sick": 0.2}))


def test_mean_of_members_can_be_outside():
    """A mean over recordings or members is taken before the decision."""
    data = task_data(
        replace(NAMED, unit_column="patient_id"), [[0.0, 0]] * 2, ["A2C"] * 2, ["test"] * 2, patients=["a", "a"]
    )
    one, other = np.eye(6)[[0]] * 0.4 + np.eye(6)[[5]] * 0.6, np.eye(6)[[0]] * 0.5 + np.eye(6)[[1]] * 0.5
    order = [VIEWS.index(name) for name in (*NAMED.classes, "Other")]
    values = np.vstack([one, other])[:, order]
    output = SimpleNamespace(indices=np.arange(2), values=values, cut=None)
    assert aggregate(data, output)["y_pred"].tolist() == ["A2C"]


def test_outside_answers_are_compared_like_wrong_answers():
    rng = np.random.default_rng(3)
    labels = list(rng.choice(BINARY.classes, 300))
    patients = [f"p{n}" for n in rng.integers(0, 60, 300)]
    table = references(BINARY, labels, patients)
    said = np.where(rng.random(300) < 0.1, "Other", np.where(rng.random(300) < 0.8, labels, "sick"))
    first = Predictions.join(table, pd.DataFrame({"id": table["id"], "y_pred": said}), BINARY, source="a")
    second = Predictions.join(table, pd.DataFrame({"id": table["id"], "y_pred": labels}), BINARY, source="b")
    result = score(first, table, CONTEXT)
    assert result.score.low < result.score.value < result.score.high
    found = compare(second, first)
    expected = 1 - f1_score(labels, said, labels=list(BINARY.classes), average="macro")
    assert found.difference == pytest.approx(expected) and found.outcome == "answers differ", "without refits"
    few = Predictions.join(table, pd.DataFrame({"id": table["id"], "y_pred": said})[5:], BINARY, allow_missing=True)
    assert score(few, table, CONTEXT).bounds.worst <= result.score.value


def test_confusion_matrix_has_a_column_for_outside_answers():
    labels = ["well"] * 10 + ["sick"] * 10
    said = ["Other"] * 3 + ["well"] * 7 + ["sick"] * 10
    frame = references(BINARY, labels).assign(y_pred=said)
    figure = classification_figure({"m": frame}, "m", "toy/sick", BINARY.classes)
    matrix = figure.tables["confusion"].set_index("true")
    assert matrix.loc["well"].to_dict() == {"well": 7, "sick": 0, "Other": 3}
    assert matrix.loc["sick"].to_dict() == {"well": 0, "sick": 10, "Other": 0}
    assert operating_point(frame, "sick") == (0.3, 1.0)
