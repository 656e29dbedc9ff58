"""Compare differences over several labels with an explicit implementation of DeLong's variance."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from cardiobench.metrics.load import load_metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.paired import comparable_labels, label_difference, moves_of_shares


def placements(positive, scores):
    """Count the share of the other class that each row is ranked correctly against."""
    wins = (scores[positive][:, None] > scores[~positive]) + 0.5 * (scores[positive][:, None] == scores[~positive])
    return wins.mean(axis=1), wins.mean(axis=0)


def test_one_label_has_delong_variance():
    rng = np.random.default_rng(0)
    truth = (np.arange(80) < 12).astype(float)[:, None]
    first, second = (rng.normal(size=(80, 1)) + shift * truth for shift in (1.5, 0.8))
    found = label_difference(ScoringInput(truth, first), ScoringInput(truth, second), Clusters.of(np.arange(80)))
    positive = truth[:, 0] == 1
    (v, w), (other_v, other_w) = placements(positive, first[:, 0]), placements(positive, second[:, 0])
    of_ill, of_well = np.var(v - other_v, ddof=1) / 12, np.var(w - other_w, ddof=1) / 68
    freedom = (of_ill + of_well) ** 2 / (of_ill**2 / 11 + of_well**2 / 79)
    difference = roc_auc_score(positive, first) - roc_auc_score(positive, second)
    se = np.sqrt(of_ill + of_well)
    assert found.se == pytest.approx(se)
    assert found.p_value == pytest.approx(2 * stats.t.sf(abs(difference) / se, freedom))
    reach = stats.t.ppf(0.975, freedom) * se
    assert (found.low, found.high) == pytest.approx((difference - reach, difference + reach))


def test_differences_of_f1_have_the_variance_of_an_infinitesimal_jackknife():
    """Perturb each weight; the positives of the single label determine the degrees of freedom."""
    rng = np.random.default_rng(3)
    truth = (np.arange(90) < 14).astype(float)[:, None]
    first, second = (np.abs(truth - (rng.random((90, 1)) < share)) for share in (0.1, 0.2))
    metric, one = load_metric("multilabel_f1"), np.ones((1, 90))
    pair = [metric.shares(truth, answer)["multilabel_f1"] for answer in (first, second)]
    found = label_difference(
        ScoringInput(truth, first),
        ScoringInput(truth, second),
        Clusters.of(np.arange(90)),
        moves_of_shares(*pair, "jaccard"),
    )

    def difference(weights):
        values = [metric.compute_resamples(truth, answer, weights)["multilabel_f1"] for answer in (first, second)]
        return values[0] - values[1]

    slope = (difference(one + 1e-6 * np.eye(90)) - difference(one)) / 1e-6
    ill, well = (
        (slope[rows] ** 2).sum() * count / (count - 1) for rows, count in ((slice(14), 14), (slice(14, 90), 76))
    )
    assert found.se == pytest.approx(np.sqrt(ill + well), rel=1e-4)
    freedom = (ill + well) ** 2 / (ill**2 / 13 + well**2 / 89)
    reach = stats.t.ppf(0.975, freedom) * found.se
    assert found.high - found.low == pytest.approx(2 * reach, rel=1e-4)
    assert (found.high + found.low) / 2 == pytest.approx(difference(one)[0])


def test_labels_of_fewer_than_five_patients_are_left_out():
    rng = np.random.default_rng(1)
    truth = np.stack([np.arange(60) < 20, np.arange(60) < 5, np.arange(60) < 4, np.arange(60) < 56], axis=1).astype(
        float
    )
    clusters = Clusters.of(np.arange(60))
    assert comparable_labels(truth, clusters).tolist() == [True, True, False, False]
    assert comparable_labels(truth, Clusters.of(np.arange(60) // 2)).tolist() == [True, False, False, False]
    first, second = (rng.normal(size=truth.shape) for _ in range(2))
    whole = label_difference(ScoringInput(truth, first), ScoringInput(truth, second), clusters)
    part = label_difference(
        ScoringInput(truth[:, :2], first[:, :2]), ScoringInput(truth[:, :2], second[:, :2]), clusters
    )
    assert whole == part
    none = label_difference(
        ScoringInput(truth[:, 2:], first[:, 2:]), ScoringInput(truth[:, 2:], second[:, 2:]), clusters
    )
    assert np.isnan(none.p_value)


def test_copies_of_rows_add_no_evidence():
    rng = np.random.default_rng(2)
    truth = (rng.random((70, 3)) < 0.3).astype(float)
    first, second = (rng.normal(size=truth.shape) + truth for _ in range(2))
    once = label_difference(ScoringInput(truth, first), ScoringInput(truth, second), Clusters.of(np.arange(70)))
    twice = [ScoringInput(np.repeat(truth, 2, axis=0), np.repeat(one, 2, axis=0)) for one in (first, second)]
    copies = label_difference(*twice, Clusters.of(np.repeat(np.arange(70), 2)))
    assert copies == pytest.approx(once)
