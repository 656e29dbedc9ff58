"""Compare intervals for failed patients with scipy and hand-worked values."""

import numpy as np
import pytest
from scipy import stats

from cardiobench.metrics.load import load_metric
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.failures import failures_sentence, share_failed


def test_zero_failures_of_sixty_allow_a_rate_of_six_percent():
    number = load_metric("mae").primary
    failed = share_failed(np.full(60, 14.9), Clusters.of(np.arange(60)), number, "%")
    expected = stats.binomtest(0, 60).proportion_ci(method="exact")
    assert (failed.value, failed.low, failed.high) == pytest.approx((0, expected.low, expected.high))
    sentence = failures_sentence(failed, number, "%")
    assert sentence == "none of 60 patients failed (off by > 15 points): up to 6 % may"


def test_patient_counts_by_the_mean_of_its_rows():
    """Patients 0 and 1 of 20 have two recordings each, with errors 0 and 40, and 10 and 16."""
    errors, who = np.array([0, 40, 10, 16] + [1] * 18), np.array([0, 0, 1, 1, *range(2, 20)])
    number = load_metric("mae").primary
    failed = share_failed(errors, Clusters.of(who), number, "%")
    exact = stats.binomtest(1, 20).proportion_ci(method="exact")
    assert (failed.value, failed.low, failed.high) == pytest.approx((1 / 20, exact.low, exact.high))
    assert failures_sentence(failed, number, "%").startswith("1 of 20 patients failed")
    assert share_failed(errors, Clusters.of(who), number, "furlong") is None, "no limit is stated for this unit"


def test_overlap_fails_below_a_half():
    number = load_metric("dice").primary
    failed = share_failed(np.linspace(0.405, 0.955, 12), Clusters.of(np.arange(12)), number, "")
    assert failed.value == pytest.approx(2 / 12)
    assert failures_sentence(failed, number, "") == "2 of 12 patients failed (dice < 0.5): up to 48 % may"
