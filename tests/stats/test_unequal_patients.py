"""Compare intervals of unequal patients with leaving out one patient at a time."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score, recall_score, roc_auc_score

from cardiobench.metrics.load import load_metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler, estimate_metric
from cardiobench.stats.unequal import stretch_of_mean, stretch_of_ranking, stretch_of_tables, stretch_of_weights

SIZES = np.array([1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 12, 1, 2, 30, 4])
WHO = np.repeat(np.arange(len(SIZES)), SIZES)
CLUSTERS, P = Clusters.of(WHO), len(SIZES)


def expected(score, derivative=None, sizes=SIZES):
    """Compute the factor from its definition; without a derivative in a patient's weight, use a small weight.

    `sizes` are the numbers of rows of each patient that enter the score.
    """
    step = 1e-6
    whole = score(np.ones(P))
    slopes = (
        derivative if derivative is not None else [(whole - score(np.ones(P) - step * row)) / step for row in np.eye(P)]
    )
    without = np.array([score(1 - row) for row in np.eye(P)])
    plain = np.sqrt((np.square(slopes)).sum() * P / (P - 1))
    left_out = np.sqrt(((without - without.mean()) ** 2).sum() * (P - 1) / P)
    effective = sizes.sum() ** 2 / (sizes**2).sum()
    return max(1, left_out / plain) * stats.t.ppf(0.975, effective - 1) / stats.t.ppf(0.975, P - 1)


def test_one_patient_with_most_of_the_rows_makes_few_patients():
    assert Clusters.of(np.repeat(np.arange(101), [400] + [1] * 100)).effective == pytest.approx(1.56, abs=0.01)
    assert Clusters.of(np.repeat(np.arange(7), 3)).effective == pytest.approx(7)


def test_intervals_of_a_mean_error():
    errors = np.random.default_rng(0).gamma(2, 3, len(WHO))
    influence = (errors - errors.mean()) / len(errors)
    by_hand = expected(lambda weights: np.average(errors, weights=weights[WHO]))
    assert by_hand > 1.2
    assert stretch_of_mean(influence, CLUSTERS) == pytest.approx(by_hand, rel=1e-4)
    weighted = stretch_of_weights(
        lambda weights: weights @ errors / weights.sum(axis=1), errors.mean(),
        np.sqrt((CLUSTERS.sum(influence) ** 2).sum() * P / (P - 1)), CLUSTERS,
    )  # fmt: skip
    assert weighted == pytest.approx(by_hand, rel=1e-4)


def test_macro_f1_against_scikit_learn():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, len(WHO))
    answer = np.where(rng.random(len(WHO)) < 0.7, truth, 1 - truth)
    by_hand = expected(lambda weights: f1_score(truth, answer, average="macro", sample_weight=weights[WHO]))
    from_tables, both = load_metric("f1_macro").from_tables, np.array([True, True])
    found = stretch_of_tables(truth * 2 + answer, 4, CLUSTERS, lambda n: from_tables(n.reshape(-1, 2, 2), both))
    assert found["f1_macro"] == pytest.approx(by_hand, rel=1e-3)


def test_sensitivity_counts_the_patients_of_positive_rows():
    rng = np.random.default_rng(5)
    truth = (np.arange(P) % 2)[WHO]
    answer = np.where(rng.random(len(WHO)) < 0.7, truth, 1 - truth)
    positive = np.bincount(WHO[truth == 1], minlength=P)
    by_hand = expected(lambda weights: recall_score(truth, answer, sample_weight=weights[WHO]), sizes=positive)
    counts = load_metric("classification_report").from_tables
    found = stretch_of_tables(truth * 2 + answer, 4, CLUSTERS, lambda n: counts(n.reshape(-1, 2, 2), np.ones(2, bool)))
    assert found["sensitivity"] == pytest.approx(by_hand, rel=1e-3)
    of_all = expected(lambda weights: recall_score(truth, answer, sample_weight=weights[WHO]))
    assert found["sensitivity"] > 1.02 * of_all, "fewer patients than those of all rows"


def of_sizes(sizes):
    """Return the factor of a score that leaving out a patient does not change, for the rows of each patient that enter it."""
    effective = sizes.sum() ** 2 / (sizes**2).sum()
    return stats.t.ppf(0.975, effective - 1) / stats.t.ppf(0.975, P - 1)


@pytest.mark.parametrize("right", [True, False])
def test_perfect_and_failed_scores_count_the_patients_of_their_rows(right):
    """No row changes such a score a little, and yet it rests on the patients of its rows, not on a single one."""
    truth = (np.arange(P) % 2)[WHO]
    answer = truth if right else 1 - truth
    counts = load_metric("classification_report").from_tables
    found = stretch_of_tables(truth * 2 + answer, 4, CLUSTERS, lambda n: counts(n.reshape(-1, 2, 2), np.ones(2, bool)))
    for label, key in enumerate(("specificity", "sensitivity")):
        assert found[key] == pytest.approx(of_sizes(np.bincount(WHO[truth == label], minlength=P)))
    assert found["accuracy"] == pytest.approx(of_sizes(SIZES))


def test_equal_answers_of_two_models_are_those_of_all_patients():
    truth = (np.arange(P) % 2)[WHO]
    answer = np.where(np.random.default_rng(5).random(len(WHO)) < 0.7, truth, 1 - truth)
    f1, both = load_metric("f1_macro").from_tables, np.ones(2, bool)

    def difference(counts):
        pairs = counts.reshape(-1, 2, 2, 2)
        return {"f1": f1(pairs.sum(axis=3), both)["f1_macro"] - f1(pairs.sum(axis=2), both)["f1_macro"]}

    found = stretch_of_tables(truth * 4 + 3 * answer, 8, CLUSTERS, difference)
    assert found["f1"] == pytest.approx(of_sizes(SIZES))


def test_auroc_of_patients_with_one_class_against_scikit_learn():
    rng = np.random.default_rng(2)
    positive = (np.arange(P) % 3 == 0)[WHO]
    scores = rng.normal(size=len(WHO)) + positive
    by_hand = expected(lambda weights: roc_auc_score(positive, scores, sample_weight=weights[WHO]))
    value = roc_auc_score(positive, scores)
    above = np.array([[np.mean(s > scores[~positive]), np.mean(scores[positive] > s)] for s in scores])
    influence = np.where(positive, (above[:, 0] - value) / positive.sum(), (above[:, 1] - value) / (~positive).sum())
    assert stretch_of_ranking(positive, influence, CLUSTERS) == pytest.approx(by_hand, rel=1e-3)


def test_both_arms_grow_and_equal_patients_keep_theirs():
    rng = np.random.default_rng(4)
    truth = rng.normal(55, 10, len(WHO))
    sample = ScoringInput(truth, truth + rng.normal(0, 5, len(WHO)))
    metric, none = load_metric("regression_report"), np.zeros(0, bool)
    given = {
        key: Sampler(sample, clusters, none)
        for key, clusters in (("unequal", CLUSTERS), ("equal", Clusters.of(np.arange(len(WHO)))))
    }
    bias = {key: estimate_metric(metric, rows, ["bias"])["bias"] for key, rows in given.items()}
    error = sample.y_pred - sample.y_true
    factor = stretch_of_mean((error - error.mean()) / len(error), CLUSTERS)
    farthest, mean, n = np.abs(truth - np.median(truth)).max(), error.mean(), len(error)
    # One made-up patient at each end, who is wrong by the distance of the farthest reference from the median.
    for key, people, se, by in (("unequal", P, bias["unequal"].se, factor), ("equal", n, stats.sem(error), 1)):
        reach = stats.t.ppf(0.975, people - 1) * se
        ends = [
            mean + by * ((people * mean + side * farthest) / (people + 1) + side * reach - mean) for side in (-1, 1)
        ]
        assert (bias[key].low, bias[key].high) == pytest.approx(tuple(ends))
    assert stretch_of_mean(error[:84] - error[:84].mean(), Clusters.of(np.arange(84) // 2)) == 1
