"""Compare ranks of models over tasks with explicit formulas of Student's t and Holm's method."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score

from cardiobench.metrics.load import load_metric
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.scoring.pairs import decide_pairs
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.ranking import rank_models
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.influence import patient_influence
from cardiobench.stats.paired import MeanDifferences

from .factories import BINARY, VALUE, references, test_rows


def placed(names, scores, moved, freedom, higher_is_better):
    """Place models given the influence of each patient on their scores, (M, P), without a correction for their number."""
    gaps = np.subtract.outer(scores, scores)
    errors = np.sqrt(((moved[:, None] - moved[None]) ** 2).sum(axis=2))
    found = MeanDifferences(gaps, errors, np.full(gaps.shape, float(freedom)), np.zeros(gaps.shape, dtype=bool))
    return decide_pairs(names, scores, [found], [higher_is_better]).places


BOTH = np.array([True, True])


def answers(table, error, task=VALUE, source="answers"):
    truth = test_rows(table)
    return Predictions.join(table, truth[["id"]].assign(y_pred=truth["y_true"] + error), task, source=source)


def test_places_follow_holm_over_all_pairs():
    rng = np.random.default_rng(0)
    moved = rng.normal(0, 0.01, (4, 100))
    scores = np.array([0.80, 0.79, 0.20, -0.40])
    places = placed(["d", "c", "b", "a"], scores, moved, 40, True)
    p = {}
    for i in range(4):
        for j in range(i + 1, 4):
            t = abs(scores[i] - scores[j]) / np.sqrt(((moved[i] - moved[j]) ** 2).sum())
            p[i, j] = 2 * stats.t.sf(t, 40)
    ordered = sorted(p, key=p.get)
    told = set()
    for rank, pair in enumerate(ordered):
        if p[pair] * (6 - rank) >= 0.05:
            break
        told.add(pair)
    expected = {}
    for model, name in enumerate("dcba"):
        better = sum((other, model) in told for other in range(4))
        worse = sum((model, other) in told for other in range(4))
        expected[name] = (1 + better, 4 - worse)
    assert {one.model: (one.first, one.last) for one in places} == expected
    assert [one.model for one in places][:2] == ["c", "d"], "one group, in alphabetical order"
    assert places[0].letters == places[1].letters == "a" and places[0].text == "1–2"


def test_constant_difference_is_significant():
    moved = np.ones((2, 30))
    first, second = placed(["x", "y"], np.array([1.0, 2.0]), moved, 29, False)
    assert (first.model, first.text, second.text) == ("x", "1", "2")
    same = placed(["x", "y"], np.array([1.0, 1.0]), moved, 29, False)
    assert [one.text for one in same] == ["1–2", "1–2"]


def test_mean_over_tasks_separates_similar_models():
    """Compute the paired t-test of the means of six tasks on six datasets by hand."""
    rng, contests, errors = np.random.default_rng(3), {}, []
    for number in range(6):
        task = dataclasses.replace(VALUE, name=f"toy{number}/ef")
        table = references(VALUE, n_test=60, per_patient=1)
        noise = rng.normal(0, 5, (2, 60))
        contests[task.name, "probe"] = {"a": answers(table, noise[0], task), "b": answers(table, 1.15 * noise[1], task)}
        errors.append(np.abs([noise[0], 1.15 * noise[1]]))
    (ranking,) = rank_models(contests)
    difference = np.mean([one[0].mean() - one[1].mean() for one in errors])
    scatter = [one[0] - one[1] - (one[0] - one[1]).mean() for one in errors]
    se = np.sqrt(sum((one**2).sum() / 60**2 for one in scatter) * 360 / 359) / 6
    p = 2 * stats.t.sf(abs(difference) / se, 6 * 59)
    assert len(ranking.tasks) == 6 and ranking.places[0].score == pytest.approx(
        np.mean([one[0].mean() for one in errors])
    )
    assert (ranking.places[0].text == "1") == (p < 0.05) and p < 0.05
    alone = [rank_models({key: models})[0].places[0].text for key, models in contests.items()]
    assert alone.count("1–2") >= 4, alone


def test_incomplete_model_keeps_a_row_without_a_place():
    table, rng = references(VALUE, n_test=60), np.random.default_rng(0)
    made = {name: answers(table, rng.normal(0, 5, 60)) for name in "abc"}
    yes = references(BINARY, n_test=60)
    truth = test_rows(yes)
    told = {name: Predictions.join(yes, truth[["id"]].assign(y_pred=truth["y_true"]), BINARY) for name in "ab"}
    found = rank_models(
        {("toy/ef", "probe"): made, ("toy/ef2", "probe"): {"a": made["a"], "b": made["b"]}, ("toy/x", "probe"): told}
    )
    tables = [(one.number.key, one.tasks, one.unplaced) for one in found]
    assert tables[:2] == [("mae", ("toy/ef", "toy/ef2"), ("c",)), ("mae", ("toy/ef",), ())]
    assert tables[2] == ("f1_macro", ("toy/x",), ())
    assert [len(one.places) for one in found] == [2, 3, 2] and found[0].lacking == {"c": ("toy/ef2",)}


def test_references_have_no_place():
    table, rng = references(VALUE, n_test=60), np.random.default_rng(0)
    made = {name: answers(table, rng.normal(0, 5, 60)) for name in "ab"}
    key = ("toy/ef", "probe")
    (ranking,) = rank_models({key: made}, {key: {"readers": answers(table, np.full(60, 2.0))}})
    assert ranking.references == {"readers": pytest.approx(2.0)} and len(ranking.places) == 2


def numbers(weights, truth, answer):
    return f1_score(truth, answer, average="macro", sample_weight=weights)


def test_macro_f1_influence_equals_scikit_learn():
    rng = np.random.default_rng(0)
    who, truth = np.arange(60) // 2, rng.integers(0, 2, 60)
    answer = np.where(rng.random(60) < 0.7, truth, 1 - truth)
    metric = load_metric("f1_macro")
    found = patient_influence(metric, "f1_macro", ScoringInput(truth, answer), Clusters.of(who), BOTH)
    step = 1e-5
    for patient in range(0, 30, 7):
        ends = [numbers(1 + sign * step * (who == patient), truth, answer) for sign in (1, -1)]
        assert found[patient] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-6)


def test_plugin_without_derivatives_takes_part():
    """Check that leaving out each patient gives the influence on a mean error by formula, up to a factor of 1 / (1 - 1 / n)."""
    rng = np.random.default_rng(1)
    truth = rng.normal(size=50)
    sample = ScoringInput(truth, truth + rng.normal(size=50))
    mae, clusters = load_metric("mae"), Clusters.of(np.arange(50))
    plugin = Metric("mine", mae.compute, mae.numbers)
    found = patient_influence(plugin, "mae", sample, clusters, np.zeros(0, bool))
    known = patient_influence(mae, "mae", sample, clusters, np.zeros(0, bool))
    assert found == pytest.approx(known * 50 / 49)
