"""Test the random-effects summary against statsmodels, closed forms, an independent root and simulated sites."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import t
from statsmodels.stats.meta_analysis import combine_effects

from cardiobench.core.errors import BadData
from cardiobench.extensions.manuscript.meta import combine, on_scale, predict_next, summarize

EFFECTS = np.array([0.1, 0.5, 0.9, -0.2, 0.4])
VARIANCES = np.array([0.02, 0.05, 0.04, 0.01, 0.3])


def test_equal_variances_give_the_interval_of_a_mean():
    """With equal variances, the method of Hartung, Knapp, Sidik and Jonkman is Student's interval of the site means."""
    found = summarize(EFFECTS, np.full(5, 0.1), np.full(5, 50), "identity")
    low, high = t.interval(0.95, 4, EFFECTS.mean(), EFFECTS.std(ddof=1) / math.sqrt(5))
    assert (found.value, found.low, found.high) == pytest.approx((EFFECTS.mean(), low, high), abs=1e-6)
    assert found.tau == pytest.approx(math.sqrt(EFFECTS.var(ddof=1) - 0.01), abs=1e-4)


def test_variance_between_sites_is_that_of_paule_and_mandel():
    def excess(tau2):
        weights = 1 / (VARIANCES + tau2)
        return weights @ (EFFECTS - weights @ EFFECTS / weights.sum()) ** 2 - 4

    tau2 = brentq(excess, 0, 10)
    mean, se, tau, _ = combine(EFFECTS, VARIANCES)
    weights = 1 / (VARIANCES + tau2)
    assert tau**2 == pytest.approx(tau2, rel=1e-3)
    assert mean == pytest.approx(weights @ EFFECTS / weights.sum(), abs=1e-4)
    # The root sets the scale of the estimator to 1, so that its standard error is that of the inverse variances.
    assert se == pytest.approx(1 / math.sqrt(weights.sum()), rel=1e-3)


def test_summary_equals_statsmodels():
    found = summarize(EFFECTS, np.sqrt(VARIANCES), np.full(5, 50), "identity")
    other = combine_effects(EFFECTS, VARIANCES, method_re="iterated", use_t=True)
    assert (found.low, found.high) == pytest.approx(tuple(other.conf_int()[3])) and found.i2 == pytest.approx(other.i2)


# ---- Published examples -----------------------------------------------------------------------------------------------


def test_summary_equals_the_published_one_of_dersimonian_and_kacker():
    """Six trials of aspirin in pregnancy (Contemporary Clinical Trials 28, 2007, tables 3 and 4), by Paule and Mandel.

    With their variance, the standard error of Hartung and Knapp is the usual one, which the article has.
    """
    treated, cases = np.array([156, 303, 565, 1570, 103, 4659]), np.array([5, 5, 12, 69, 9, 313])
    controls, others = np.array([74, 303, 477, 1565, 105, 4650]), np.array([8, 17, 9, 94, 11, 352])
    effects = np.log(cases * (controls - others) / ((treated - cases) * others))
    variances = 1 / cases + 1 / (treated - cases) + 1 / others + 1 / (controls - others)
    mean, se, tau, _ = combine(effects, variances)
    assert (mean, se, tau) == pytest.approx((-0.3811, 0.2060, 0.3681), abs=5e-5)


def test_standard_error_is_the_published_one_of_knapp_and_hartung():
    """Nineteen studies of teachers' expectations (Raudenbush 2009, table 16.3, with the variance of DerSimonian and Laird)."""
    effects = [0.03, 0.12, -0.14, 1.18, 0.26, -0.06, -0.02, -0.32, 0.27, 0.80, 0.54, 0.18, -0.02, 0.23, -0.18, -0.06]
    effects += [0.30, 0.07, -0.07]
    variances = [0.0156, 0.0216, 0.0279, 0.1391, 0.1362, 0.0106, 0.0106, 0.0484, 0.0269, 0.0630, 0.0912, 0.0497]
    variances += [0.0835, 0.0841, 0.0253, 0.0279, 0.0193, 0.0088, 0.0303]
    other = combine_effects(np.array(effects), np.array(variances), method_re="dl", use_t=True)
    assert (other.tau2, other.mean_effect_re) == pytest.approx((0.0259, 0.0893), abs=5e-5)
    assert other.sd_eff_w_re_hksj == pytest.approx(0.0636, abs=5e-5)
    assert other.conf_int()[3] == pytest.approx((-0.0442, 0.2229), abs=5e-5)
    # The formula of Knapp and Hartung at our variance between sites, 0.0188 by REML and 0.0259 above.
    mean, se, tau, _ = combine(np.array(effects), np.array(variances))
    weights = 1 / (np.array(variances) + tau**2)
    assert 0.0188 < tau**2 < 0.09 and 0.0837 < mean < 0.1143
    spread = weights @ (np.array(effects) - mean) ** 2 / 18
    assert se == pytest.approx(math.sqrt(spread / weights.sum()), rel=1e-9)


def test_prediction_interval_beside_published_ones():
    """Ten trials of blood pressure (Riley, Higgins and Deeks, BMJ 342, 2011), as analysed with the R package pimeta.

    Published 95 % prediction intervals are -0.760 to 0.092 (Higgins and others), -0.989 to 0.331 (Partlett and Riley) and
    -0.877 to 0.225 (Nagashima and others, with the distribution of Cochran's Q). One trial has 78 % of the inverse
    variances, so that ours, with the generalised Q, knows less about the variance between trials and is the widest.
    """
    effects = np.array([0.0, 0.1, -0.4, -0.8, -0.63, 0.22, -0.34, -0.51, 0.03, -0.81])
    errors = np.array([0.42348, 0.21939, 0.02551, 0.19898, 0.30103, 0.30103, 0.07143, 0.10204, 0.12245, 0.30103])
    found = summarize(effects, errors, np.full(10, 50), "identity")
    # By REML in place of Paule and Mandel: -0.3287 (-0.5761 to -0.0814).
    assert (found.value, found.low, found.high) == pytest.approx((-0.3287, -0.5761, -0.0814), abs=0.005)
    assert -1.15 < found.next_low < -0.989 and 0.331 < found.next_high < 0.5


def test_scales_are_those_of_the_delta_method():
    effects, variances = on_scale(np.array([0.8]), np.array([0.04]), np.array([100]), "logit")
    assert effects[0] == pytest.approx(logit(0.8)) and variances[0] == pytest.approx(1 / (100 * 0.8 * 0.2))
    effects, variances = on_scale(np.array([5.0]), np.array([0.5]), np.array([100]), "log")
    assert effects[0] == pytest.approx(math.log(5)) and variances[0] == pytest.approx(0.01)


def test_perfect_site_gets_half_a_patient():
    effects, variances = on_scale(np.array([1.0, 0.0]), np.array([0.0, 0.0]), np.array([20, 20]), "logit")
    assert effects[0] == pytest.approx(logit(20.5 / 21)) == -effects[1] and np.isfinite(variances).all()
    found = summarize(np.array([1.0, 0.9, 0.8]), np.array([0.0, 0.05, 0.06]), np.array([20, 40, 40]), "logit")
    assert 0 < found.next_low < found.low < found.value < found.high < found.next_high < 1


def test_two_sites_have_no_prediction_interval_and_one_has_no_summary():
    found = summarize(np.array([0.7, 0.8]), np.array([0.03, 0.03]), np.array([100, 100]), "logit")
    assert math.isnan(found.next_low) and 0 < found.low < found.value < found.high < 1
    with pytest.raises(BadData, match="at least two sites"):
        summarize(np.array([0.7]), np.array([0.03]), np.array([100]), "logit")


def test_prediction_interval_is_reproducible_and_wider_with_more_variation():
    one, again = predict_next(EFFECTS, VARIANCES), predict_next(EFFECTS, VARIANCES)
    assert one == again and one[0] < -0.2 and one[1] > 0.9
    low, high = predict_next(EFFECTS / 10, VARIANCES)
    assert high - low < one[1] - one[0]


def test_many_large_sites_have_the_normal_prediction_interval():
    effects = np.random.default_rng(1).normal(1.0, 0.4, 400)
    low, high = predict_next(effects, np.full(400, 1e-4))
    reach = 1.96 * effects.std(ddof=1)
    assert (low, high) == pytest.approx((effects.mean() - reach, effects.mean() + reach), abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("tau", [0.0, 0.3])
def test_intervals_cover_the_mean_and_a_further_site(tau):
    """Of 150 repetitions with six sites of 20 to 400 patients, at least 89 % are covered: three standard errors below 95 %."""
    rng, hits, following = np.random.default_rng(2), [], []
    for _ in range(150):
        size = rng.integers(20, 400, 6)
        shares = rng.binomial(size, expit(rng.normal(logit(0.8), tau, 6))) / size
        found = summarize(shares, np.sqrt(shares * (1 - shares) / size), size, "logit")
        hits.append(found.low <= 0.8 <= found.high)
        following.append(found.next_low <= expit(rng.normal(logit(0.8), tau)) <= found.next_high)
    assert np.mean(hits) >= 0.89 and np.mean(following) >= 0.89
