import dataclasses

import numpy as np
import pytest
from scipy.stats import ttest_ind, ttest_rel

from cardiobench.core.errors import BadPredictions
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.refits import NO_TRAINING
from cardiobench.scoring.compare import compare, paired_difference
from cardiobench.scoring.families import Family
from cardiobench.scoring.predictions import Predictions
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.holm import holm
from cardiobench.stats.influence import row_influence
from cardiobench.stats.paired import difference_of_classes, two_sided, wider
from cardiobench.tasks.answers import RefitAnswers

from .factories import BINARY, VALUE, references, test_rows


def answers(table, shift, source, noise=1.0, seed=0):
    truth = test_rows(table)
    error = shift + np.random.default_rng(seed).normal(0, noise, len(truth))
    joined = Predictions.join(table, truth[["id"]].assign(y_pred=truth["y_true"] + error), VALUE, source=source)
    return dataclasses.replace(joined, refits=RefitAnswers(NO_TRAINING))


def test_better_model_is_found_in_any_order():
    table = references(VALUE)
    near, far = answers(table, 2, "near"), answers(table, 9, "far")
    found, turned = compare(near, far), compare(far, near)
    assert (found.better, turned.better) == ("a", "b")
    assert found.difference == pytest.approx(found.a - found.b) == pytest.approx(-turned.difference)
    assert found.high < 0 < turned.low
    assert found.p_value < 1e-6 and found.outcome == "better" and turned.outcome == "worse"
    assert (found.n, found.n_patients) == (60, 30)


def test_pairing_detects_differences_within_overlapping_intervals():
    """Test two models that share an error of SD 8 per row; one has an additional error of 0.3."""
    table = references(VALUE, n_test=200)
    truth = test_rows(table)
    shared = np.abs(np.random.default_rng(5).normal(0, 8, len(truth))) + 1
    first, second = (
        Predictions.join(table, truth[["id"]].assign(y_pred=truth["y_true"] + shared + more), VALUE)
        for more in (0, 0.3)
    )
    found = compare(first, second)
    assert found.better == "answers differ" and found.difference == pytest.approx(-0.3)


def test_same_predictions_are_equivalent():
    table = references(VALUE)
    found = compare(answers(table, 2, "a"), answers(table, 2, "b"))
    assert (found.difference, found.low, found.high, found.p_value, found.better) == (0, 0, 0, 1, "equivalent")


def test_paired_errors_are_judged_by_students_t():
    """With one row per patient, interval and p-value of the difference equal scipy's paired t-test."""
    table = references(VALUE, n_test=50, per_patient=1)
    first, second = answers(table, 3, "a", 4, 0), answers(table, 3, "b", 4, 1)
    found = compare(first, second)
    errors = [np.abs(one.sample().y_pred - one.sample().y_true) for one in (first, second)]
    expected = ttest_rel(*errors)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert (found.inner_low, found.inner_high) == pytest.approx(tuple(expected.confidence_interval(0.90)))
    assert found.outcome == "undecided" and "usually seen with these 50 patients" in found.sentence


def test_equivalent_needs_margin_of_the_suite():
    table = references(VALUE, n_test=400, per_patient=1)
    first, second = answers(table, 3, "a", 2, 0), answers(table, 3.01, "b", 2, 1)
    found = compare(first, second)
    assert found.margin == 1.0 and found.outcome == "equivalent"
    assert dataclasses.replace(found, margin=None).outcome == "undecided"


def test_two_classifiers_are_compared_in_the_same_smoothed_draws():
    """Compare equal models on 4 ill of 48 patients: bootstrap percentiles separate 12 of 100 pairs, smoothed draws about 2."""
    truth, rng = np.repeat([0, 1], (44, 4)), np.random.default_rng(0)
    clusters, metric, called = Clusters.of(np.arange(48)), load_metric("f1_macro"), []
    for seed in range(150):
        one, two = (ScoringInput(truth, np.where(rng.random(48) < 0.8, truth, 1 - truth)) for _ in range(2))
        found = paired_difference(metric, "f1_macro", one, two, clusters, 2, 300, seed)
        assert found.low < found.high and found.se > 0 and 0 < found.p_value <= 1
        called.append(not found.low <= 0 <= found.high)
    assert np.mean(called) <= 0.08


def test_balanced_accuracies_are_compared_by_welch_test():
    truth, rng, metric = np.repeat([0, 1], (30, 7)), np.random.default_rng(3), load_metric("classification_report")
    samples = [ScoringInput(truth, np.where(rng.random(37) < right, truth, 1 - truth)) for right in (0.8, 0.5)]
    moved = [row_influence(metric.from_tables, "balanced_accuracy", one, np.array([True, True])) for one in samples]
    gain = np.subtract(*[(one.y_pred == truth).astype(float) for one in samples])
    known = ttest_ind(gain[truth == 1], -gain[truth == 0], equal_var=False)
    difference = gain[truth == 0].mean() / 2 + gain[truth == 1].mean() / 2
    found = difference_of_classes(difference, moved[0] - moved[1], truth, Clusters.of(np.arange(37)))
    assert found.p_value == pytest.approx(known.pvalue, rel=1e-4)
    assert (found.low, found.high) == pytest.approx(np.array(known.confidence_interval(0.95)) / 2, rel=1e-4)
    assert (found.inner_low, found.inner_high) == pytest.approx(np.array(known.confidence_interval(0.9)) / 2, rel=1e-4)
    drawn = found._replace(low=found.low - 1, inner_high=found.inner_high + 1, se=0.0, p_value=0.9)
    both = wider(found, drawn)
    assert (
        both == found._replace(low=found.low - 1, inner_high=found.inner_high + 1, p_value=0.9) == wider(drawn, found)
    )


def test_constant_difference_is_significant():
    truth, clusters, metric = np.arange(20.0), Clusters.of(np.arange(20)), load_metric("mae")
    two, four = (ScoringInput(truth, truth + error) for error in (2.0, 4.0))
    found = paired_difference(metric, "mae", two, four, clusters, 0)
    assert (found.low, found.high, found.p_value) == (-2, -2, 0)
    assert paired_difference(metric, "mae", two, two, clusters, 0).p_value == 1


def test_missing_members_count_in_the_correction():
    family = Family("suite/probe", ("a", "b", "c"))
    assert family.adjust(0.02) == pytest.approx(0.06) == holm([0.02, 1.0, 1.0])[0]
    assert family.adjust(0.4) == 1.0 and np.isnan(family.adjust(np.nan))


def test_two_sided_p_of_known_shares():
    assert two_sided(np.array([1.0] * 95 + [-1.0] * 4)) == pytest.approx(2 * 5 / 100)
    assert two_sided(np.zeros(99)) == 1.0
    assert np.isnan(two_sided(np.full(3, np.nan)))


@pytest.mark.slow
def test_p_values_are_uniform_when_there_is_no_difference():
    """Without a true difference, a share of about alpha of the p-values is below alpha."""
    table = references(VALUE, n_test=80, per_patient=1)
    p = [
        compare(answers(table, 3, "a", 2, 2 * i), answers(table, 3, "b", 2, 2 * i + 1), resamples=400).p_value
        for i in range(150)
    ]
    assert 0.005 <= np.mean(np.array(p) < 0.05) <= 0.12
    assert 0.35 <= np.mean(np.array(p) < 0.5) <= 0.65


def test_other_units_are_refused():
    table = references(VALUE)
    whole = answers(table, 1, "whole.csv")
    part = Predictions(VALUE, whole.frame.iloc[2:], 60, "part.csv")
    with pytest.raises(BadPredictions, match=r"same units of toy/ef: whole.csv alone has u000, u001"):
        compare(whole, part)
    with pytest.raises(BadPredictions, match="Compare predictions for the same task"):
        compare(whole, Predictions(BINARY, whole.frame, 60, "b.csv"))
    with pytest.raises(BadPredictions, match="different references: y_true of u000"):
        other = whole.frame.copy()
        other.loc[0, "y_true"] += 1
        compare(whole, Predictions(VALUE, other, 60, "b.csv"))


def test_holm_by_hand():
    # Sorted .01 .02 .03 .04 times 4 3 2 1 is .04 .06 .06 .04, made monotonic.
    assert holm([0.04, 0.01, 0.03, 0.02]).tolist() == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.9]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []
    assert holm([0.03]).tolist() == [0.03]


@pytest.mark.parametrize("values", [[0.1, 1.2], [np.nan], [[0.1, 0.2]]])
def test_holm_refuses_invalid_p_values(values):
    with pytest.raises(ValueError, match="p-values"):
        holm(values)
