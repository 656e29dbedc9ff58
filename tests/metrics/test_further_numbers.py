"""Test which numbers a result shows, only stores, or omits."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import brier_score_loss

from cardiobench.data import catalog
from cardiobench.metrics.load import load_metric
from cardiobench.results.score_result import ScoreResult
from tests.report.example_results import scored_example


def test_binary_result_shows_about_twenty_numbers():
    """Count about twenty numbers, including both ends of each interval: score, floor, p-value, patients, AUROC and others."""
    _, result = scored_example("phantom_ecg/cd", 0.9, 1)
    assert set(result.overall) == {
        "f1_macro",
        "auroc",
        "sensitivity",
        "specificity",
        "mean_probability",
        "observed_share",
    }
    assert set(result.further) == {
        "accuracy", "balanced_accuracy", "ppv", "npv", "auprc", "brier", "calibration_slope", "calibration_intercept",
    }  # fmt: skip
    assert set(result.numbers) == set(result.overall) | set(result.further)
    assert result.overall["observed_share"].value == pytest.approx(0.5, abs=0.2)


def test_regression_numbers_sensitive_to_outliers_have_no_interval():
    joined, result = scored_example("phantom_echo/ef", 0.9, 1)
    frame = joined.frame
    assert {"mae", "bias", "agreement_low", "agreement_high", "within_5_points", "failed"} <= set(result.overall)
    assert set(result.further) == {"rmse", "r2", "pearson", "spearman", "concordance"}
    assert np.isnan(result.overall["agreement_low"].low) and "gross error" in result.overall["agreement_low"].reason
    error = frame["y_pred"] - frame["y_true"]
    assert result.further["rmse"] == pytest.approx(np.sqrt((error**2).mean()))
    assert result.further["pearson"] == pytest.approx(stats.pearsonr(frame["y_true"], frame["y_pred"]).statistic)
    hits = int((error.abs() <= 5).sum())
    found, exact = result.overall["within_5_points"], stats.binomtest(hits, len(frame)).proportion_ci(method="exact")
    assert found.value == hits / len(frame) > 0.9
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_further_numbers_are_written_and_read_again():
    joined, result = scored_example("phantom_ecg/cd", 0.9, 1)
    again = ScoreResult.from_json(result.to_json())
    frame, yes = joined.frame, catalog.task("phantom_ecg/cd").classes[1]
    assert again.further == result.further
    assert again.further["brier"] == pytest.approx(brier_score_loss(frame["y_true"] == yes, frame[f"p_{yes}"]))


def test_metrics_keep_all_their_numbers():
    report = load_metric("classification_report")
    assert {"mcc", "nll", "ece"} <= set(report.compute([0, 1, 1], [0, 1, 0], [[0.8, 0.2], [0.1, 0.9], [0.6, 0.4]]))
