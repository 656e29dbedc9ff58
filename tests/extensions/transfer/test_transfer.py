"""Test transfer between datasets that agree, that disagree, and that have too few training labels."""

from dataclasses import replace

import numpy as np
import pytest

from cardiobench.core.errors import NotApplicable
from cardiobench.data.references import references_of
from cardiobench.data.spec import Task
from cardiobench.extensions.transfer import figures as figure
from cardiobench.extensions.transfer.protocol import Transfer
from cardiobench.protocols.analysis import Analysis
from cardiobench.protocols.base import aggregate
from cardiobench.protocols.probe import LinearProbe
from cardiobench.protocols.refits import digest_of_draws
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.context import ResultContext
from cardiobench.runner.cells.answers import refit_answers
from cardiobench.scoring.compare import compare
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score
from cardiobench.testing.protocol import with_other_test_rows
from tests.protocols.analyses import layers_of
from tests.protocols.conftest import BINARY, REGRESSION, task_data


def dataset(task, sign=1, seed=0, n=240, splits=("train", "validation", "test")):
    """Return labels that increase or decrease with the first dimension."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 4))
    score = sign * features[:, 0] + 0.2 * rng.normal(size=n)
    labels = np.where(score > 0, "yes", "no") if task.kind == "binary" else 50 + 10 * score
    return task_data(task, features, labels, np.resize(list(splits), n))


def analysis_of(**data):
    tables = {found.task.name: found for found in data.values()}
    tasks = tuple(found.task for found in data.values())
    return Analysis(
        "as",
        tasks,
        {"name": "m"},
        0,
        100,
        lambda task, _: tables[task.name],
        lambda task: references_of(tables[task.name].rows, task),
    )


def named(name, task=BINARY):
    return replace(task, name=f"{name}/{task.target}")


def matrix(output):
    return output.tables["matrix"].set_index(["train", "test"])


def test_probes_of_equal_and_opposite_relations():
    output = Transfer().analyze(
        analysis_of(a=dataset(named("a")), b=dataset(named("b"), seed=1), c=dataset(named("c"), sign=-1, seed=2)), None
    )
    table = matrix(output)
    assert len(table) == 9 and (table.loc[[("a", "a"), ("b", "b"), ("c", "c")], "change"] == 0).all()
    assert abs(table.loc[("a", "b"), "change"]) < 0.08
    assert table.loc[("a", "b"), "change_low"] <= 0 <= table.loc[("a", "b"), "change_high"]
    for train, test in (("a", "c"), ("c", "b")):
        assert table.loc[(train, test), "score"] < 0.2 < 0.8 < table.loc[(test, test), "score"]
        drop = table.loc[(train, test), "score"] - table.loc[(test, test), "score"]
        assert table.loc[(train, test), "change"] == pytest.approx(drop)
        assert output.values[f"{train} -> {test}: change"].high < -0.5
    assert "a -> a: change" not in output.values
    pairs = {(one.variant, one.task.dataset): one.output for one in output.predictions}
    assert set(pairs) == {(one, other) for one in "abc" for other in "abc" if one != other}
    given = output.values["c -> b: change"]
    assert pairs["c", "b"].details["train_on"] == "c"
    assert pairs["c", "b"].details["change_from_own_probe"]["value"] == given.value < 0


@pytest.mark.slow
@pytest.mark.parametrize("task", [BINARY, REGRESSION], ids=lambda task: task.kind)
def test_intervals_equal_results_and_compare(task):
    one, two = dataset(named("a", task)), dataset(named("b", task), seed=1)
    output = Transfer().analyze(analysis_of(a=one, b=two), None)
    references = references_of(two.rows, two.task)
    joined, outputs = {}, {}
    for train, data in (("a", one), ("b", two)):
        outputs[train] = made = LinearProbe().fit(data).predict(two)
        predictions = Predictions.join(references, aggregate(two, made), two.task, source=train)
        refits = refit_answers(two, made, predictions.frame["id"])
        # Independent draws are paired by their number.
        joined[train] = replace(predictions, refits=replace(refits, draws="of both"))
        assert refits.count == 20 and refits.draws == made.draws
    assert outputs["b"].draws == digest_of_draws(two, LinearProbe().predict(two, None, "").drawn)
    for train, predictions in joined.items():
        known = score(predictions, references, ResultContext(resamples=100)).score
        found = output.values[f"{train} -> b: {task.metrics[0]}"]
        assert (found.value, found.low, found.high) == pytest.approx((known.value, known.low, known.high), abs=1e-12)
    known, found = compare(joined["a"], joined["b"], resamples=100), output.values["a -> b: change"]
    assert found.covers == known.covers == "test and training patients"
    alone = compare(*(replace(joined[name], refits=None) for name in "ab"), resamples=100)
    assert found.high - found.low > alone.high - alone.low
    assert found.value == pytest.approx(known.difference, abs=1e-12)
    # Answers of refits are kept in single precision.
    assert (found.low, found.high) == pytest.approx((known.low, known.high), abs=1e-5)


def test_fewer_than_ten_patients_have_no_interval():
    few = dataset(named("b"), seed=1, n=27)
    assert len(np.unique(few.patients[few.indices("test")])) == 9
    output = Transfer().analyze(analysis_of(a=dataset(named("a")), b=few), None)
    for name in ("a -> b: f1_macro", "a -> b: change"):
        found = output.values[name]
        assert (
            np.isfinite(found.value)
            and np.isnan([found.low, found.high]).all()
            and "fewer than 10 patients" in found.reason
        )


def test_error_grows_by_dataset_offset():
    """Add 12 % to the labels of one dataset: the probe of the other one then has an error of 12 there, up to noise."""
    low, high = dataset(named("a", REGRESSION)), dataset(named("b", REGRESSION), seed=1)
    high.rows[REGRESSION.target] += 12.0
    table = matrix(Transfer().analyze(analysis_of(a=low, b=high), None))
    assert table.loc[("a", "b"), "score"] == pytest.approx(12, abs=1) and table.loc[("b", "b"), "score"] < 3
    assert set(table["better"]) == {"lower"} and table.loc[("a", "b"), "change_low"] > 8


def test_test_only_dataset_is_target_not_source():
    output = Transfer().analyze(analysis_of(a=dataset(named("a")), b=dataset(named("b"), splits=("test",))), None)
    table = matrix(output)
    assert set(table.index) == {("a", "a"), ("a", "b")} and table.loc[("a", "b"), "score"] > 0.8
    assert np.isnan(table.loc[("a", "b"), "change"]) and "b/as has no training rows" in output.warnings[0]


def test_labels_of_other_units_are_not_compared():
    other = Task("b/ef", "regression", "ef", ("mae",), unit="cm")
    with pytest.raises(NotApplicable, match="differ in their classes or unit"):
        Transfer().analyze(analysis_of(a=dataset(named("a", REGRESSION)), b=dataset(other)), None)


def test_subjects_are_labels_of_two_datasets():
    tasks = [
        named("a"),
        named("b"),
        named("a", REGRESSION),
        replace(named("b", REGRESSION), name="b/age", target="age"),
    ]
    assert set(Transfer().subjects(tasks)) == {"as"}


@pytest.mark.slow
def test_figure_shows_pairs_and_their_changes():
    output = Transfer().analyze(
        analysis_of(a=dataset(named("a")), b=dataset(named("b"), seed=1), c=dataset(named("c"), splits=("test",))), None
    )
    record = AnalysisResult("transfer", "as", ("a/as",), output.values, output.tables, models=({"name": "m"},))
    pairs, changes = figure.draw(record)["pairs"].axes
    assert len(pairs.texts) == 6, "c is only a target"
    assert [label.get_text() for label in changes.get_yticklabels()] == ["a → b", "b → a"], (
        "labels are listed from below"
    )


@pytest.mark.parametrize("task", [BINARY, REGRESSION], ids=lambda task: task.kind)
def test_probes_do_not_learn_from_test_rows(task, monkeypatch):
    data = {name: dataset(named(name, task), seed=seed) for seed, name in enumerate("ab")}
    changed = {name: with_other_test_rows(one) for name, one in data.items()}
    before, after = (
        layers_of(monkeypatch, lambda one=one: Transfer().analyze(analysis_of(**one), None)) for one in (data, changed)
    )
    assert len(before) == len(after) and all(map(np.array_equal, before, after))
