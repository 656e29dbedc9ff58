"""Test calibration and net benefit against statsmodels, scikit-learn, closed forms and simulated data."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_linear_model import GLM

from cardiobench.core.errors import BadPredictions
from cardiobench.extensions.calibration.glm import fit_logistic, log_odds
from cardiobench.extensions.calibration.measure import FEW_OF_EACH, calibration, decision_band, reliability_band
from cardiobench.extensions.calibration.recalibrate import isotonic, platt
from cardiobench.report.plots.curves import THRESHOLDS, decision_curve
from cardiobench.stats.clusters import Clusters


def rows(seed=0, patients=150, each=2, slope=1.0):
    """Return truth, probability and patients; the true calibration slope is `slope`."""
    rng = np.random.default_rng(seed)
    clusters = Clusters.of(np.repeat(np.arange(patients), each))
    odds = np.repeat(rng.normal(-0.5, 1, patients), each) + rng.normal(0, 0.5, patients * each)
    return rng.uniform(size=len(odds)) < expit(slope * odds), expit(odds), clusters


def test_slope_and_intercept_equal_statsmodels():
    truth, given, clusters = rows()
    found = calibration(truth, given, clusters)
    two = GLM(truth.astype(float), np.column_stack([np.ones(len(given)), log_odds(given)]), family=Binomial()).fit()
    one = GLM(truth.astype(float), np.ones(len(given)), family=Binomial(), offset=log_odds(given)).fit()
    for key, value in (("calibration_slope", two.params[1]), ("calibration_intercept", one.params[0])):
        assert found[key].value == pytest.approx(value, abs=1e-7) and found[key].low < value < found[key].high
    assert found["brier"].value == pytest.approx(np.mean((truth - given) ** 2))


def test_standard_errors_equal_fits_without_each_patient():
    truth, given, clusters = rows(patients=120, each=3)
    found = calibration(truth, given, clusters)
    columns = np.column_stack([np.ones(len(given)), log_odds(given)])
    without = []
    for patient in range(clusters.count):
        rest = clusters.of_row != patient
        slope = GLM(truth[rest].astype(float), columns[rest], family=Binomial()).fit().params[1]
        offset = columns[rest, 1]
        shift = GLM(truth[rest].astype(float), columns[rest, :1], family=Binomial(), offset=offset).fit().params[0]
        without.append((slope, shift))
    jackknife = np.std(without, axis=0) * np.sqrt(clusters.count - 1)
    assert found["calibration_slope"].se == pytest.approx(jackknife[0], rel=0.01)
    assert found["calibration_intercept"].se == pytest.approx(jackknife[1], rel=0.01)
    robust = {"cov_type": "cluster", "cov_kwds": {"groups": clusters.of_row}}
    plain = GLM(truth.astype(float), columns, family=Binomial()).fit(**robust).bse[1]
    assert plain < found["calibration_slope"].se < 1.1 * plain, "statsmodels, slightly smaller"


def test_too_few_patients_of_a_class_have_no_interval():
    truth, given, clusters = rows(patients=40, each=1)
    found = calibration(truth & (np.cumsum(truth) <= 15), given, clusters)
    assert found["calibration_slope"].reason == FEW_OF_EACH and np.isnan(found["calibration_slope"].low)
    assert not np.isnan(found["calibration_slope"].value) and not np.isnan(found["brier"].low)


def test_calibration_is_undefined_for_equal_or_separating_answers():
    truth, given, clusters = rows()
    constant = calibration(truth, np.full(len(truth), 0.3), clusters)
    assert np.isnan(constant["calibration_slope"].value) and "undefined" in constant["calibration_slope"].reason
    assert "number of different probabilities 1" in reliability_band(truth, np.full(len(truth), 0.3), clusters)
    split = np.where(truth, 0.6 + given / 4, given / 4)
    assert np.isnan(calibration(truth, split, clusters)["calibration_slope"].value)
    assert "separate" in reliability_band(truth, split, clusters)


def test_net_benefit_equals_the_curve_of_the_report():
    truth, given, clusters = rows()
    band = decision_band(truth, given, clusters, THRESHOLDS)
    np.testing.assert_allclose(band["net_benefit"], decision_curve(truth, given)[1], atol=1e-12)
    np.testing.assert_allclose(band["treat_all"], decision_curve(truth, np.ones(len(truth)))[1], atol=1e-12)
    np.testing.assert_allclose(band["gain"], band["net_benefit"] - band["treat_all"], atol=1e-12)
    assert (band["low"] <= band["net_benefit"]).all() and (band["net_benefit"] <= band["high"]).all()


def test_net_benefit_of_a_hand_worked_example():
    """Of 10 patients, 3 of 4 ill ones and 2 of 6 well ones are treated from 20 %: 3/10 - 2/10 * 1/4."""
    truth = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], dtype=bool)
    given = np.array([0.9, 0.5, 0.2, 0.1, 0.3, 0.25, 0.1, 0.1, 0.0, 0.0])
    (found,) = decision_band(truth, given, Clusters.of(range(10)), [0.2]).to_dict("records")
    assert found["net_benefit"] == pytest.approx(0.25) and found["treat_all"] == pytest.approx(0.4 - 0.6 / 4)
    assert found["gain"] == pytest.approx(4 / 10 / 4 - 1 / 10) and found["treated"] == 0.5


def test_without_false_positives_the_upper_end_is_wilsons():
    truth = np.arange(80) < 30
    given = np.where(np.arange(80) < 20, 0.9, 0.1)
    (found,) = decision_band(truth, given, Clusters.of(range(80)), [0.5]).to_dict("records")
    expected = binomtest(20, 80).proportion_ci(method="wilson")
    assert found["net_benefit"] == 20 / 80 and found["high"] == pytest.approx(expected.high, abs=1e-9)


def test_fewer_than_ten_patients_have_no_interval():
    truth, given, clusters = rows(patients=9, each=4)
    band = decision_band(truth, given, clusters, [0.2])
    assert band["low"].isna().all() and band["net_benefit"].notna().all()


def test_spline_contains_the_straight_line():
    """With answers that are perfectly calibrated in the sample, the curve is the diagonal."""
    given = np.repeat([0.1, 0.2, 0.4, 0.5, 0.8], 200)
    truth = np.concatenate([np.arange(200) < 200 * share for share in (0.1, 0.2, 0.4, 0.5, 0.8)])
    band = reliability_band(truth, given, Clusters.of(range(1000)))
    np.testing.assert_allclose(band["share"], band["probability"], atol=1e-6)
    assert (band["low"] < band["share"]).all() and (band["share"] < band["high"]).all()


def test_platt_equals_scikit_learn_and_calibrates_its_own_rows():
    truth, given, clusters = rows(slope=0.5)
    found = platt(truth, given)(given)
    fitted = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(log_odds(given)[:, None], truth)
    np.testing.assert_allclose(found, fitted.predict_proba(log_odds(given)[:, None])[:, 1], atol=1e-6)
    again = calibration(truth, found, clusters)
    assert again["calibration_slope"].value == pytest.approx(1, abs=1e-6)
    assert again["calibration_intercept"].value == pytest.approx(0, abs=1e-6)


def test_isotonic_pools_violators_and_stays_inside():
    truth = np.array([0, 1, 0, 1, 1], dtype=bool)
    found = isotonic(truth, np.array([0.1, 0.2, 0.3, 0.6, 0.9]))
    np.testing.assert_allclose(found(np.array([0.0, 0.2, 0.3, 1.0])), [1 / 7, 0.5, 0.5, 6 / 7])


@pytest.mark.parametrize("fit", [platt, isotonic])
@pytest.mark.parametrize("bad", ["one class", "constant"])
def test_recalibration_of_useless_answers_is_refused(fit, bad):
    truth, given, _ = rows()
    with pytest.raises(BadPredictions, match="no recalibration"):
        fit(truth & (bad != "one class"), np.full(len(given), 0.4) if bad == "constant" else given)


def test_dependent_columns_are_not_fitted():
    truth, given, _ = rows()
    assert fit_logistic(np.column_stack([given, 2 * given]), truth) is None


@pytest.mark.slow
@pytest.mark.parametrize(("patients", "each"), [(150, 1), (100, 3)])
def test_intervals_cover_the_truth(patients, each):
    """Of 200 repetitions, at least 90 % are covered, three standard errors below 95 %; the true slope is 0.7."""
    covered = {"slope": [], "band": [], "benefit": []}
    many = rows(seed=99, patients=200_000, each=1, slope=0.7)
    expected = decision_band(*many[:2], many[2], [0.3])["net_benefit"][0]
    for seed in range(200):
        truth, given, clusters = rows(seed, patients, each, slope=0.7)
        slope = calibration(truth, given, clusters)["calibration_slope"]
        covered["slope"].append(slope.low <= 0.7 <= slope.high)
        band = reliability_band(truth, given, clusters)
        shares = expit(0.7 * log_odds(band["probability"].to_numpy()))
        covered["band"].append(np.mean((band["low"] <= shares) & (shares <= band["high"])))
        (benefit,) = decision_band(truth, given, clusters, [0.3]).to_dict("records")
        covered["benefit"].append(benefit["low"] <= expected <= benefit["high"])
    shares = pd.DataFrame(covered).mean()
    assert ((shares > 0.90) & (shares <= 0.995)).all(), shares


def test_slope_that_one_patient_alone_determines_has_no_interval():
    truth, patient = np.arange(240) % 2 == 0, np.arange(240) // 2
    given = np.where(patient == 7, 0.9, 0.5)
    found = calibration(truth, given, Clusters.of(patient))["calibration_slope"]
    assert np.isfinite(found.value) and np.isnan(found.low) and "one patient alone" in found.reason
