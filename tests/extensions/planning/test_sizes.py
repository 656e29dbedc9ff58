"""Test numbers of patients against published examples, other packages, closed forms and simulated studies."""

import math

import numpy as np
import pytest
from scipy.stats import norm, t
from sklearn.metrics import f1_score, roc_auc_score
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import proportion_confint

from cardiobench.core.errors import BadConfig
from cardiobench.extensions.planning.errors import CLOSED, auroc_se, closed_form, f1_variance
from cardiobench.extensions.planning.sizes import (
    check_power,
    check_width,
    log_odds_for,
    patients_above_floor,
    patients_for_difference,
    patients_for_half_width,
    patients_for_not_worse,
    power_above_floor,
    power_of,
    validation_sizes,
)
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.intervals import auroc_interval


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        # Prevalence, AUROC, mean and standard deviation of the log odds, width of observed / expected. The numbers are
        # those of the R package pmvalsampsize 0.1.0, whose log odds are simulated.
        ((0.018, 0.8, -5, 2.5, 1.0), (905, 4544, 4252)),
        ((0.2, 0.78, -1.75, 1.22, 0.2), (1538, 2958, 511)),
    ],
)
def test_validation_sizes_equal_published_software(settings, expected):
    prevalence, auroc, mean, sd, width = settings
    found = validation_sizes(prevalence, auroc, mean=mean, sd=sd, ratio_width=width)
    assert found == pytest.approx(expected, rel=0.005)


def test_auroc_sizes_equal_the_published_formula():
    """Riley et al. 2021: standard error 0.0255 (width 0.1) at an AUROC of 0.72 and a prevalence of 45 %: 400 patients."""
    assert validation_sizes(0.45, 0.72).auroc == pytest.approx(400, abs=2)


def test_standard_error_of_an_auroc_is_the_published_one():
    """Hanley and McNeil (Radiology 143, 1982): 51 abnormal and 58 normal CTs, area 0.893, standard error 0.032."""
    assert auroc_se(0.893, 51 / 109, 109) == pytest.approx(0.032, abs=0.001)


def test_patients_to_tell_two_aurocs_apart_equal_the_published_table():
    """Hanley and McNeil 1982, table III: 0.70 and 0.75, one-sided at 5 %, need 652, 897 and 1131 of each class.

    They use the variance without a difference where we use that of the two areas, about 4 % less.
    """
    se = lambda n: math.hypot(auroc_se(0.70, 0.5, n), auroc_se(0.75, 0.5, n))  # noqa: E731
    for power, published in ((0.8, 652), (0.9, 897), (0.95, 1131)):
        assert patients_for_not_worse(se, 0.05, power) / 2 == pytest.approx(0.96 * published, rel=0.01)


def test_log_odds_have_the_prevalence_and_auroc():
    mean, sd = log_odds_for(0.2, 0.78)
    rng = np.random.default_rng(0)
    odds = rng.normal(mean, sd, 400_000)
    truth = rng.uniform(size=len(odds)) < 1 / (1 + np.exp(-odds))
    assert truth.mean() == pytest.approx(0.2, abs=0.003) and roc_auc_score(truth, odds) == pytest.approx(
        0.78, abs=0.003
    )


def test_mean_equals_the_power_of_statsmodels():
    """A difference of 0.5 standard deviations with 80 % power needs 34 pairs (G*Power: 34)."""
    se = lambda n: 1 / math.sqrt(n)  # noqa: E731
    assert patients_for_difference(se, 0.5, 0.8) == 34
    exact = TTestPower().solve_power(0.1, power=0.9, alpha=0.05)
    assert patients_for_difference(se, 0.1, 0.9) == math.ceil(exact)
    one_sided = TTestPower().solve_power(0.1, power=0.9, alpha=0.05, alternative="larger")
    assert patients_for_not_worse(se, 0.1, 0.9) == math.ceil(one_sided)
    assert patients_for_difference(se, 0.1, 0.9, tests=5) > math.ceil(exact)


def test_half_width_of_a_share_is_the_textbook_number():
    """A share of 50 % ± 5 points needs 385 patients with the normal distribution (Cochran 1977), 387 with Student's."""
    se = closed_form("accuracy", 0.5, (0.5, 0.5))
    assert math.ceil(0.25 * (norm.isf(0.025) / 0.05) ** 2) == 385
    found = patients_for_half_width(se, 0.05)
    assert found in (386, 387) and t.isf(0.025, found - 1) * se(found) <= 0.05 < t.isf(0.025, found - 2) * se(found - 1)


def test_sensitivity_needs_more_patients_for_a_rare_class():
    rare, even = (patients_for_half_width(closed_form("sensitivity", 0.9, (1 - p, p)), 0.05) for p in (0.1, 0.5))
    assert rare == pytest.approx(5 * even, rel=0.03)


def test_search_for_a_size_is_bounded():
    se = lambda n: 1 / math.sqrt(n)  # noqa: E731
    assert patients_for_half_width(se, 5) == 10 and patients_for_half_width(se, 1e-6) is None


@pytest.mark.parametrize(("score", "shares"), [(0.7, (0.5, 0.5)), (0.8, (0.9, 0.1)), (0.6, (0.25,) * 4)])
def test_variance_of_f1_equals_simulated_answers(score, shares):
    rng, n = np.random.default_rng(1), 400
    truth = np.repeat(np.arange(len(shares)), np.round(n * np.asarray(shares)).astype(int))
    rights = np.linspace(1 / len(shares), 1, 400)

    def answers(right):
        other = (truth + rng.integers(1, len(shares), len(truth))) % len(shares)
        return np.where(rng.uniform(size=len(truth)) < right, truth, other)

    means = [np.mean([f1_score(truth, answers(right), average="macro") for _ in range(3)]) for right in rights[::20]]
    right = float(np.interp(score, means, rights[::20]))
    drawn = []
    for _ in range(400):
        truth = rng.choice(len(shares), n, p=shares)  # The mix of classes varies, too.
        drawn.append(f1_score(truth, answers(right), average="macro", zero_division=0))
    assert np.std(drawn) == pytest.approx(math.sqrt(f1_variance(score, shares) / n), rel=0.12)


@pytest.mark.parametrize("power", [1.0, 0.05, 0.0, 2.0, math.nan])
def test_impossible_power_is_refused(power):
    with pytest.raises(BadConfig, match="--power"):
        check_power(power)


@pytest.mark.parametrize("margin", [0.0, -0.1, math.nan, math.inf])
def test_margin_without_width_is_refused(margin):
    with pytest.raises(BadConfig, match="--margin"):
        check_width(margin, "--margin")


@pytest.mark.parametrize(
    ("metric", "score"), [("auroc", 1.0), ("auroc", 0.0), ("mae", 0.0), ("f1_macro", 0.4), ("dice", 0.9)]
)
def test_impossible_scores_are_refused(metric, score):
    with pytest.raises(BadConfig, match=f"score {score:g}|no closed form"):
        closed_form(metric, score, (0.5, 0.5))
    assert "dice" not in CLOSED


def paired_t(difference):
    """Return whether each row of differences, (studies, n), has a mean that differs from 0."""
    n = difference.shape[1]
    return np.abs(difference.mean(axis=1)) / (difference.std(axis=1, ddof=1) / math.sqrt(n)) > t.isf(0.025, n - 1)


def simulated_power(setting, studies=1500):
    """Return the planned power of a setting and the share of simulated studies, with raw answers, that succeed."""
    rng = np.random.default_rng(7)
    if setting in ("share above floor", "pair of shares"):
        one, pair = closed_form("accuracy", 0.65, (0.5, 0.5)), setting == "pair of shares"
        if not pair:
            at_floor = closed_form("accuracy", 0.5, (0.5, 0.5))
            n = patients_above_floor(one, at_floor, 0.15, 0.8)
            low, _ = proportion_confint(rng.binomial(n, 0.65, studies), n, method="wilson")
            return power_above_floor(0.15, one(n), at_floor(n), 0.05), (low > 0.5).mean()
        variance = 0.65 * 0.35 + 0.70 * 0.30 - 2 * 0.5 * math.sqrt(0.65 * 0.35 * 0.70 * 0.30)
        se = lambda n: math.sqrt(variance / n)  # noqa: E731
        n = patients_for_difference(se, 0.05, 0.8)
        both = 0.65 * 0.70 + 0.5 * math.sqrt(0.65 * 0.35 * 0.70 * 0.30)
        outcome = rng.choice(4, (studies, n), p=[both, 0.65 - both, 0.70 - both, 1 - 1.35 + both])
        return power_of(0.05, se(n), n, 0.05, "two-sided"), paired_t((outcome == 2) * 1.0 - (outcome == 1)).mean()
    if setting in ("pair of errors", "errors not worse"):
        # The correlation of absolute errors is that of half-normal numbers with this correlation of the errors.
        latent = 0.8
        shared = (2 / np.pi) * (np.sqrt(1 - latent**2) + latent * np.arcsin(latent))
        correlation = (shared - 2 / np.pi) / (1 - 2 / np.pi)
        one = closed_form("mae", 5.0, ())
        se = lambda n: math.sqrt(2 * (1 - correlation)) * one(n)  # noqa: E731
        search = patients_for_difference if setting == "pair of errors" else patients_for_not_worse
        n = search(se, 1.0, 0.8)
        errors = rng.multivariate_normal([0, 0], [[1, latent], [latent, 1]], (studies, n))
        absolute = 5.0 / math.sqrt(2 / np.pi) * np.abs(errors)
        difference = absolute[..., 1] - absolute[..., 0]
        if setting == "pair of errors":
            return power_of(1.0, se(n), n, 0.05, "two-sided"), paired_t(difference + 1.0).mean()
        upper = difference.mean(axis=1) + t.isf(0.05, n - 1) * difference.std(axis=1, ddof=1) / math.sqrt(n)
        return power_of(1.0, se(n), n, 0.05, "larger"), (upper < 1.0).mean()
    auroc, prevalence, wanted = (0.65, 0.3, 0.8) if setting == "area above floor" else (0.75, 0.2, 0.9)
    se, at_floor = (lambda n, area=area: auroc_se(area, prevalence, n) for area in (auroc, 0.5))
    n = patients_above_floor(se, at_floor, auroc - 0.5, wanted)
    wins = []
    for _ in range(studies):
        truth = rng.uniform(size=n) < prevalence
        scores = rng.normal(size=n) + truth * math.sqrt(2) * norm.ppf(auroc)
        wins.append(0 < truth.sum() < n and auroc_interval(truth, scores, Clusters.of(range(n))).low > 0.5)
    return power_above_floor(auroc - 0.5, se(n), at_floor(n), 0.05), np.mean(wins)


@pytest.mark.parametrize(
    "setting",
    ["share above floor", "pair of shares", "pair of errors", "errors not worse", "area above floor", "area far above"],
)
def test_planned_power_is_that_of_simulated_studies(setting):
    planned, simulated = simulated_power(setting)
    assert planned >= 0.8 and simulated == pytest.approx(planned, abs=0.03)
