"""Test scores of multilabel tasks: scikit-learn, closed forms, verdicts, groups and missing predictions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, precision_recall_fscore_support, roc_auc_score

from cardiobench.core.errors import BadPredictions
from cardiobench.data.spec import SEX_GROUPS, Task
from cardiobench.metrics.load import load_formula, load_metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.consistency import check_consistency
from cardiobench.results.context import ResultContext
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.compare import compare
from cardiobench.scoring.missing_answers import fill_missing
from cardiobench.scoring.predictions import Predictions, read_predictions
from cardiobench.scoring.score import score
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler, estimate_metric, score_classes
from cardiobench.stats.information import p_of_labels
from cardiobench.tasks.labels import label_set

CLASSES = ("A", "B", "C", "rare")
TASK = Task(
    "toy/findings", "multilabel", "findings", ("auroc_macro",), CLASSES, partially_labelled=True, groups=(SEX_GROUPS,)
)


def tables(n=60, seed=0, unmeasured=0.1):
    """Return labels (n, K) with unmeasured cells, and scores with ties."""
    rng = np.random.default_rng(seed)
    truth = (rng.random((n, 4)) < (0.5, 0.3, 0.2, 0.05)).astype(float)
    scores = np.round(np.clip(truth * 0.3 + rng.random((n, 4)) * 0.7, 0, 1), 1)
    return np.where(rng.random((n, 4)) < unmeasured, np.nan, truth), scores


def joined(truth, scores, task=TASK, per_patient=2):
    n = len(truth)
    ids = [f"u{row:03d}" for row in range(n)]
    cells = [label_set(np.array(CLASSES)[row == 1], CLASSES, np.array(CLASSES)[np.isnan(row)]) for row in truth]
    patients = [f"p{row // per_patient}" for row in range(n)]
    sex = np.where(np.arange(n) // per_patient % 2, "F", "M")
    frame = pd.DataFrame({"id": ids, "patient_id": patients, "split": "test", "y_true": cells, "sex": sex})
    references = pd.concat(
        [frame, frame.assign(id="t" + frame["id"], patient_id="t" + frame["patient_id"], split="train")]
    )
    answers = pd.DataFrame({"id": ids, **{f"p_{name}": scores[:, code] for code, name in enumerate(CLASSES)}})
    return Predictions.join(references, answers, task), references, answers


def sklearn_means(truth, scores):
    areas = []
    for labels, values in zip(truth.T, scores.T, strict=True):
        known = ~np.isnan(labels)
        if 0 < labels[known].sum() < known.sum():
            areas.append(
                (roc_auc_score(labels[known], values[known]), average_precision_score(labels[known], values[known]))
            )
    return np.mean(areas, axis=0)


@pytest.mark.parametrize("seed", range(3))
def test_resamples_equal_scikit_learn_over_present_classes(seed):
    truth, scores = tables(seed=seed)
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(60, np.full(60, 1 / 60), size=150)  # More than one block of resamples.
    drawn = load_metric("auroc_macro").compute_resamples(truth, scores, weights.astype(float))
    for number in range(0, 150, 10):
        rows = np.repeat(np.arange(60), weights[number])
        expected = sklearn_means(truth[rows], scores[rows])
        assert drawn["auroc_macro"][number] == pytest.approx(expected[0], abs=1e-12)
        assert drawn["auprc_macro"][number] == pytest.approx(expected[1], abs=1e-12)


def test_hand_worked_example():
    """Check class A by hand (positives .9 and .4, negatives .4 and .1): 1, 1, 1/2, 1 of 1. Class B has two measured rows."""
    truth = [[1, None], [1, 1], [0, 0], [0, None]]
    scores = [[0.9, 0.5], [0.4, 0.2], [0.4, 0.7], [0.1, 0.5]]
    compute = load_formula("auroc_macro").compute
    each = compute(truth, scores, average=None)
    assert each["auroc"] == [3.5 / 4, 0.0] and each["auprc"] == [(1 + 2 / 3) / 2, 0.5]
    assert compute(truth, scores)["auroc_macro"] == 3.5 / 8


def test_perfect_and_constant_predictions_get_extreme_scores():
    truth, _ = tables(unmeasured=0)
    seen = score(joined(truth, truth)[0], joined(truth, truth)[1], ResultContext(resamples=200))
    assert seen.score.value == 1.0 and seen.overall["auprc_macro"].value == 1.0 and not seen.collapsed
    assert 0.9 < seen.score.low < 1.0 == seen.score.high, "a perfect mean is not certain"
    assert np.isnan(seen.overall["auprc_macro"].low), "a mean over labels is biased upwards if few patients have one"
    assert "biased upwards if few patients have a label" in seen.overall["auprc_macro"].reason
    assert seen.verdict.word == "above the floor" and seen.verdict.statistic == "auroc_macro"
    constant = np.full(truth.shape, 0.3)
    blind = score(joined(truth, constant)[0], joined(truth, constant)[1], ResultContext(resamples=200))
    assert blind.score.value == 0.5 and blind.collapsed and blind.verdict.p_value == 1.0
    assert blind.overall["auprc_macro"].value == pytest.approx(truth.mean(axis=0).mean())


def test_result_holds_floors_each_class_and_the_classes_left_out():
    truth, scores = tables()
    truth[:, 3] = np.where(np.arange(60) < 3, 1, 0)
    predictions, references, _ = joined(truth, scores)
    result = score(predictions, references, ResultContext(resamples=200))
    assert result.floor.value == 0.5 and result.floors["best_constant"].value == 0.5
    assert set(result.floors) == {"best_uninformed", "best_constant"}
    assert list(result.per_class) == list(CLASSES)
    rare = result.per_class["rare"]
    assert (rare.n, rare.positives, rare.patients) == (60, 3, 2)
    assert rare.auroc.value == pytest.approx(roc_auc_score(truth[:, 3], scores[:, 3]))
    assert rare.auroc.low < rare.auroc.value < rare.auroc.high
    assert result.score.value == pytest.approx(np.mean([one.auroc.value for one in result.per_class.values()]))
    assert any("fewer than 10 patients with" in sentence and "rare" in sentence for sentence in result.warnings)
    assert ScoreResult.from_json(result.to_json()).to_json()["per_class"] == result.to_json()["per_class"]


def test_empty_class_is_left_out_of_the_mean():
    truth, scores = tables(unmeasured=0)
    truth[:, 3] = 0
    predictions, references, _ = joined(truth, scores)
    result = score(predictions, references, ResultContext(resamples=50))
    assert np.isnan(result.per_class["rare"].auroc.value) and result.per_class["rare"].auroc.reason == "no row has it"
    assert result.score.value == pytest.approx(sklearn_means(truth, scores)[0])
    assert any("left out of the mean" in sentence and "rare" in sentence for sentence in result.warnings)


def test_groups_are_compared_over_the_same_classes():
    truth, scores = tables(n=120, unmeasured=0)
    truth[:, 3] = 0
    truth[:2, 3] = 1  # Recordings of one man.
    predictions, references, _ = joined(truth, scores)
    result = score(predictions, references, ResultContext(resamples=50))
    men = np.arange(120) // 2 % 2 == 0
    for label, rows in (("M", men), ("F", ~men)):
        expected = sklearn_means(truth[rows][:, :3], scores[rows][:, :3])[0]
        assert result.groups["sex"].values[label].value == pytest.approx(expected)
    assert 0 < result.groups["sex"].gap.p_value <= 1
    assert any("scores by sex are over 3 of 4 classes" in sentence for sentence in result.warnings)


def test_missing_answers_are_judged_in_the_worst_case():
    truth, _ = tables(unmeasured=0)
    _, references, answers = joined(truth, truth)
    predictions = Predictions.join(references, answers.iloc[5:], TASK, allow_missing=True)
    result = score(predictions, references, ResultContext(resamples=50))
    worst = truth.copy()
    worst[:5] = 1 - worst[:5]
    assert result.bounds is not None
    assert result.bounds.worst == pytest.approx(sklearn_means(truth, worst)[0]) and result.bounds.best == 1.0


def test_information_test_keeps_its_level():
    """Test uninformative scores: p is uniform, also with unmeasured classes and two rows per patient."""
    values = []
    for seed in range(200):
        truth, _ = tables(n=40, seed=seed)
        scores = np.random.default_rng(seed + 1000).random((40, 4))
        values.append(p_of_labels(truth, scores, Clusters.of(np.arange(40) // 2), draws=99, seed=seed).p_value)
    assert 0.01 <= np.mean(np.array(values) <= 0.05) <= 0.10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame[["id"]], "neither y_pred nor probabilities"),
        (lambda frame: frame[["id"]].assign(y_pred="?A"), "not classes of toy/findings"),
        (lambda frame: frame.drop(columns="p_rare"), "probabilities for p_A, p_B, p_C only"),
        (lambda frame: frame.assign(p_A=1.5), "outside"),
        (lambda frame: frame.assign(y_pred="A;XX"), "not classes of toy/findings"),
    ],
)
def test_unscorable_predictions_are_refused(change, message):
    truth, scores = tables()
    _, references, answers = joined(truth, scores)
    with pytest.raises(BadPredictions, match=message):
        Predictions.join(references, change(answers), TASK)


def test_external_predictions_are_read_by_column(tmp_path):
    truth, scores = tables()
    predictions, _, answers = joined(truth, scores)
    answers.to_csv(tmp_path / "answers.csv", index=False)
    read = read_predictions(tmp_path / "answers.csv", TASK)
    pd.testing.assert_frame_equal(read, answers, check_dtype=False)
    assert predictions.frame["y_pred"].str.split(";").map(len).max() > 1


def by_scikit_learn(truth, answers):
    """Return F1, precision, recall and specificity of each class with positive and negative rows, shape (4, K')."""
    rows = []
    for labels, given in zip(truth.T, answers.T, strict=True):
        known = ~np.isnan(labels)
        pair = labels[known], given[known]
        if 0 < labels[known].sum() < known.sum():
            precision, recall, f1, _ = precision_recall_fscore_support(*pair, labels=[0, 1], zero_division=0)
            rows.append([f1[1], precision[1], recall[1], recall[0]])
    return np.array(rows).T


NAMES = ("multilabel_f1", "multilabel_precision", "multilabel_recall", "multilabel_specificity")


@pytest.mark.parametrize("seed", range(40))
def test_scores_of_decisions_equal_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    truth, scores = tables(n=int(rng.integers(8, 60)), seed=seed, unmeasured=rng.choice([0, 0.1, 0.5]))
    answers = (scores >= rng.random(4)).astype(float)
    answers[:, seed % 4] *= seed % 3 > 0  # A class that is never predicted.
    expected = by_scikit_learn(truth, answers)
    formula = load_formula("multilabel_f1")
    found, each = formula.compute(truth, answers), formula.compute(truth, answers, average=None)
    assert [found[name] for name in NAMES] == pytest.approx(expected.mean(axis=1), abs=1e-12)
    for values, column in zip(each.values(), expected, strict=True):
        assert np.array(values)[~np.isnan(values)] == pytest.approx(column, abs=1e-12)
    weights = rng.multinomial(len(truth), np.full(len(truth), 1 / len(truth)), size=5)
    drawn = formula.compute_resamples(truth, answers, weights.astype(float))
    for number, counts in enumerate(weights):
        rows = np.repeat(np.arange(len(truth)), counts)
        again = by_scikit_learn(truth[rows], answers[rows])
        if again.size:
            assert [drawn[name][number] for name in NAMES] == pytest.approx(again.mean(axis=1), abs=1e-12)


def test_share_uses_rows_of_the_formula():
    truth, scores = tables(unmeasured=0.2)
    answers = (scores >= 0.5).astype(float)
    formula = load_formula("multilabel_f1")
    each = formula.compute(truth, answers, average=None)
    for key, (hits, rows) in formula.shares(truth, answers).items():
        share = hits.sum(axis=0) / rows.sum(axis=0)
        share = 2 * share / (1 + share) if key == "multilabel_f1" else share
        assert share == pytest.approx(np.array(each[key.removeprefix("multilabel_")]), abs=1e-12)
        assert not (hits & ~rows).any()


def test_decision_floor_assigns_every_class():
    truth, _ = tables(n=400, unmeasured=0.1)
    formula = load_formula("multilabel_f1")
    floors = formula.floor(truth, 4)
    assert floors["multilabel_f1"][0] == pytest.approx(by_scikit_learn(truth, np.ones(truth.shape))[0].mean())
    rng, rates = np.random.default_rng(0), np.nanmean(truth, axis=0)
    for share, expected in ((rates, rates.mean()), (0.5, (rates / (0.5 + rates)).mean())):
        permuted = [formula.compute(truth, (rng.random(truth.shape) < share) * 1.0) for _ in range(300)]
        assert np.mean([one["multilabel_f1"] for one in permuted]) == pytest.approx(expected, abs=0.01)
        assert expected < floors["multilabel_f1"][0]
        assert np.mean([one["multilabel_precision"] for one in permuted]) == pytest.approx(
            floors["multilabel_precision"][0], abs=0.01
        )


def decisions(truth, scores, cut=0.5):
    """Join predictions that name classes without probabilities."""
    _, references, answers = joined(truth, scores)
    cells = [label_set(np.array(CLASSES)[row >= cut], CLASSES) for row in scores]
    return Predictions.join(references, answers[["id"]].assign(y_pred=cells), TASK, source=f"cut {cut}"), references


def test_decisions_are_ranked_by_f1_without_auroc():
    truth, scores = tables(n=400)
    predictions, references = decisions(truth, scores)
    result = score(predictions, references, ResultContext(resamples=100))
    assert result.metric == "multilabel_f1" and set(result.overall) == set(NAMES) and not result.per_class
    assert result.score.value == pytest.approx(by_scikit_learn(truth, (scores >= 0.5) * 1.0)[0].mean())
    assert result.score.low < result.score.value < result.score.high and result.verdict.p_value < 0.01
    assert any("decisions without probabilities: no auroc_macro" in sentence for sentence in result.warnings)
    assert check_consistency(ScoreResult.from_json(result.to_json())) == []
    empty, _ = decisions(truth, np.zeros(truth.shape))
    nothing = score(empty, references, ResultContext(resamples=100))
    assert nothing.score.value == 0 and nothing.collapsed and nothing.verdict.p_value == 1


def test_mean_over_labels_of_few_patients_has_no_interval():
    predictions, references = decisions(*tables(n=120))
    result = score(predictions, references, ResultContext(resamples=100))
    assert np.isnan(result.score.low) and result.verdict.word == "too few to say"
    assert result.score.reason == "no interval: 1 of 4 labels have fewer than 10 patients, or fewer lack them"


def test_wide_interval_of_rare_classes_is_explained():
    """Classes of 3 patients have long intervals, which hardly change the mean between test sets."""
    rng, classes = np.random.default_rng(0), [f"c{n:02d}" for n in range(30)]
    task = replace(TASK, classes=tuple(classes))
    truth = np.zeros((600, 30))
    for column, count in enumerate([3] * 24 + [150] * 6):
        truth[rng.permutation(600)[:count], column] = 1
    scores = 1 / (1 + np.exp(-2.5 * truth - rng.normal(size=truth.shape)))
    cells = [label_set(np.array(classes)[row == 1], classes) for row in truth]
    ids = [f"u{n}" for n in range(600)]
    references = pd.DataFrame({"id": ids, "patient_id": ids, "split": "test", "y_true": cells})
    answers = pd.DataFrame(scores, columns=[f"p_{name}" for name in classes]).assign(id=ids)
    result = score(Predictions.join(references, answers, task), references, ResultContext(resamples=50))
    (said,) = (one for one in result.warnings if "is wide below" in one)
    few = [one for one in result.per_class.values() if one.patients < 10]
    arms = {name: (one.auroc.value - one.auroc.low) ** 2 for name, one in result.per_class.items()}
    share = 100 * sum(arms[name] for name, one in result.per_class.items() if one in few) / sum(arms.values())
    assert said.startswith(
        "the interval of auroc_macro is wide below, because 24 of 30 classes have fewer than 10 patients"
    )
    assert f"make {share:.0f} % of" in said and f"standard error of {100 * result.score.se:.2f} points only" in said
    predictions, references, _ = joined(*tables(n=400))
    ordinary = score(predictions, references, ResultContext(resamples=50))
    assert not any("wide below" in one for one in ordinary.warnings)


def test_given_decisions_are_used_instead_of_probabilities():
    truth, scores = tables(n=120)
    _, references, answers = joined(truth, scores)
    cells = [label_set(np.array(CLASSES)[row >= 0.3], CLASSES) for row in scores]
    result = score(
        Predictions.join(references, answers.assign(y_pred=cells), TASK), references, ResultContext(resamples=50)
    )
    assert result.metric == "auroc_macro" and result.score.value == pytest.approx(sklearn_means(truth, scores)[0])
    expected = by_scikit_learn(truth, (scores >= 0.3) * 1.0)[0].mean()
    assert result.overall["multilabel_f1"].value == pytest.approx(expected)
    cut = score(joined(truth, scores)[0], references, ResultContext(resamples=50))
    expected = by_scikit_learn(truth, (scores >= 0.5) * 1.0)[0].mean()
    assert cut.overall["multilabel_f1"].value == pytest.approx(expected)


def test_decisions_are_compared_on_the_same_patients():
    truth, scores = tables(n=400)
    (one, _), (other, _) = (decisions(truth, scores, cut) for cut in (0.5, 0.9))
    found = compare(one, other, resamples=400)
    values = [by_scikit_learn(truth, (scores >= cut) * 1.0)[0].mean() for cut in (0.5, 0.9)]
    assert found.metric == "multilabel_f1" and [found.a, found.b] == pytest.approx(values)
    assert 0 < found.low < found.difference < found.high and found.better == "answers differ"
    assert compare(joined(truth, scores)[0], one, resamples=50).metric == "multilabel_f1", "one has no probabilities"
    assert compare(joined(truth, scores)[0], joined(truth, scores)[0], resamples=50).metric == "auroc_macro"
    with pytest.raises(BadPredictions, match="auroc_macro needs probabilities, but one"):
        compare(joined(truth, scores)[0], one, "auroc_macro")


def test_comparisons_omit_and_name_labels_of_four_patients():
    truth, scores = tables(n=400)
    truth[:, 0] = np.arange(len(truth)) < 8  # Rows of four patients.
    others = np.random.default_rng(1).random(scores.shape)
    found = compare(joined(truth, scores)[0], joined(truth, others)[0], resamples=50)
    count = truth.shape[1]
    assert found.labels == f"over {count - 1} of {count} labels, those that at least 5 patients have and 5 lack"
    expected = [sklearn_means(truth[:, 1:], one[:, 1:])[0] for one in (scores, others)]
    assert [found.a, found.b, found.difference] == pytest.approx([*expected, expected[0] - expected[1]])


def test_missing_decisions_are_wrong_or_right():
    truth, scores = tables(unmeasured=0)
    whole, references = decisions(truth, scores)
    answers = whole.frame[["id", "y_pred"]].iloc[5:]
    part = Predictions.join(references, answers, TASK, allow_missing=True)
    result = score(part, references, ResultContext(resamples=50))
    for worst, bound in ((True, result.bounds.worst), (False, result.bounds.best)):
        filled = (scores >= 0.5) * 1.0
        filled[:5] = 1 - truth[:5] if worst else truth[:5]
        assert bound == pytest.approx(by_scikit_learn(truth, filled)[0].mean())
        assert (fill_missing(part, worst=worst).sample().y_pred[-5:] == filled[:5]).all()


def test_empty_cell_of_a_file_is_none_of_the_classes(tmp_path):
    truth, scores = tables()
    predictions, references = decisions(truth, scores, 0.8)
    predictions.frame[["id", "y_pred"]].to_csv(tmp_path / "reader.csv", index=False)
    read = Predictions.join(references, read_predictions(tmp_path / "reader.csv", TASK), TASK)
    assert (read.frame["y_pred"] == predictions.frame["y_pred"]).all() and (read.frame["y_pred"] == "").any()


@pytest.mark.slow
@pytest.mark.parametrize("right", [0.6, 0.95])
def test_intervals_of_decisions_hold_the_truth_with_few_positives(right):
    """Intervals of decisions with known rates; with fewer than 10 positives of a label, there is none."""
    rates, n, metric = np.array([15, 40]) / 400, 400, load_metric("multilabel_f1")
    false = 0.01
    truth_of = {
        "multilabel_f1": np.mean(2 * rates * right / (rates * right + (1 - rates) * false + rates)),
        "multilabel_precision": np.mean(rates * right / (rates * right + (1 - rates) * false)),
        "multilabel_recall": right,
        "multilabel_specificity": 1 - false,
    }
    covered, given, enough = dict.fromkeys(truth_of, 0), dict.fromkeys(truth_of, 0), 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        truth = (rng.random((n, 2)) < rates).astype(float)
        answers = np.where(truth == 1, rng.random((n, 2)) < right, rng.random((n, 2)) < false).astype(float)
        enough += truth.sum(axis=0).min() >= 10
        sampler = Sampler(ScoringInput(truth, answers), Clusters.of(np.arange(n)), np.array([True, True]))
        for key, found in estimate_metric(metric, sampler).items():
            given[key] += not np.isnan(found.low)
            covered[key] += found.low <= truth_of[key] <= found.high
    assert 280 <= enough < 300 and set(given.values()) == {enough}
    assert all(count >= 0.9 * enough for count in covered.values()), covered


def test_ten_patients_are_enough_for_the_interval_of_a_class():
    truth, rng = np.array([[0.0], [1.0]] * 5), np.random.default_rng(0)
    for count, reason in ((10, False), (9, True)):
        sample = ScoringInput(truth[:count], truth[:count], rng.random((count, 1)))
        found = score_classes(Sampler(sample, Clusters.of(np.arange(count)), np.array([True]), 10, 0), ("A",))["A"]
        assert bool(found.auroc.reason) is reason and bool(np.isnan(found.auroc.low)) is reason
