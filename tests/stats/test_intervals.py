"""Compare intervals with closed forms and check their coverage."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from cardiobench.metrics.load import list_metrics, load_formula, load_metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.stats.areas import share_of_rows
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import METHODS, Sampler, estimate_metric
from cardiobench.stats.information import macro_f1
from cardiobench.stats.intervals import (
    auroc_interval,
    auroc_variance,
    exact_ends,
    made_up_answers,
    mean_interval,
    placements,
    quantile_interval,
    ratio_interval,
    smoothed_tables,
    standard_error,
    t_interval,
    wilson_ends,
)
from cardiobench.tasks.unit_means import mean_metric

BOTH = np.array([True, True])


def one_row_each(n):
    return Clusters.of(np.arange(n))


def test_one_row_per_patient_gives_jeffreys_interval():
    """Test a sensitivity of 3 of 4: the draws follow Beta(3.5, 1.5), the interval recommended by Brown, Cai and DasGupta."""
    truth, answer = np.repeat([0, 1], (44, 4)), np.repeat([0, 1, 1], (40, 5, 3))
    answer[44:] = [1, 1, 1, 0]
    tables = smoothed_tables(truth, answer, one_row_each(48), 2, 40_000)
    drawn = tables[:, 1, 1] / tables[:, 1].sum(axis=1)
    assert stats.kstest(drawn, stats.beta(3.5, 1.5).cdf).pvalue > 0.001
    assert tables.sum(axis=(1, 2)).mean() == pytest.approx(48, rel=0.02), "pseudo-patients do not add rows"


def test_shared_draws_keep_the_distribution():
    """Compare shared gammas with exponential weights for each patient, for two rows per patient."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(40), 2)
    truth, answer = rng.integers(0, 2, 80), rng.integers(0, 2, 80)
    shared = smoothed_tables(truth, answer, Clusters.of(who), 2, 20_000)
    cells = np.zeros((40, 4))
    np.add.at(cells, (who, truth * 2 + answer), 1)
    plain = (rng.standard_exponential((20_000, 40)) @ cells).sum(axis=1)
    assert shared.sum(axis=(1, 2)).std() == pytest.approx(plain.std(), rel=0.03)


def test_resamples_keep_classes_and_interval_width():
    truth = np.repeat([0, 1], (44, 4))
    drawn = macro_f1(smoothed_tables(truth, truth, one_row_each(48), 2, 2000), BOTH)
    low, high, _ = quantile_interval(drawn, 1.0)
    assert not np.isnan(drawn).any() and high == 1 and 0.5 < low < 0.95


def test_simulated_reader_is_half_right():
    assert made_up_answers(np.repeat([0, 1], (44, 4)), 2).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    three = made_up_answers(np.repeat([0, 1, 2], (60, 30, 10)), 3)
    assert three.tolist() == [[0.5, 0.375, 0.125], [3 / 7, 0.5, 1 / 14], [1 / 3, 1 / 6, 0.5]]
    assert made_up_answers(np.zeros(5, int), 3)[0].tolist() == [0.5, 0.25, 0.25], "a single class gives no information"


def test_good_score_over_four_classes_is_within_its_interval():
    """Test 30 patients, 3 of the rarest class, and 3 % errors; uniform pseudo-patients would miss the truth in 44 %."""
    metric, rng, truth = load_metric("f1_macro"), np.random.default_rng(0), np.repeat(np.arange(4), (12, 9, 6, 3))
    held = []
    for seed in range(120):
        answer = np.where(rng.random(30) < 0.97, truth, rng.integers(0, 4, 30))
        rows = Sampler(ScoringInput(truth, answer), one_row_each(30), np.ones(4, bool), 200, seed)
        found = estimate_metric(metric, rows)["f1_macro"]
        held.append(found.low <= 0.9732 <= found.high)
    assert np.mean(held) >= 0.9


def test_equal_errors_have_an_interval_with_a_width():
    """Test predictions that are all two points too high; another patient may be as wrong as the farthest reference."""
    truth = np.arange(20.0)
    rows = Sampler(ScoringInput(truth, truth + 2), one_row_each(20), np.zeros(0, bool))
    found = estimate_metric(load_metric("mae"), rows)["mae"]
    assert (found.value, found.low, found.reason) == (2, 2, "")
    assert found.high == pytest.approx((20 * 2 + 9.5) / 21)
    overlap = mean_metric(load_metric("dice").primary, 0.0)
    found = estimate_metric(
        overlap, Sampler(ScoringInput(np.zeros(20), np.ones(20)), one_row_each(20), np.zeros(0, bool))
    )["dice"]
    assert (found.low, found.value, found.high) == (pytest.approx(20 / 21), 1, 1)
    without = estimate_metric(
        mean_metric(load_metric("dice").primary),
        Sampler(ScoringInput(np.zeros(20), np.ones(20)), one_row_each(20), np.zeros(0, bool)),
    )
    assert "zero width" in without["dice"].reason


def test_interval_of_a_mean_by_hand():
    """Check half-widths 3, 4 and 5: those of uncorrelated scores add in quadrature, those of identical scores linearly."""
    values, lows, highs = np.array([0.9, 0.7]), np.array([0.6, 0.3]), np.array([0.9, 0.8])
    apart = mean_interval(values, lows, highs, np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]]), 4)
    assert (apart.low, apart.high) == pytest.approx((0.8 - 0.5 / 2, 0.8 + 0.1 / 2))
    same = mean_interval(values, lows, highs, np.array([[1.0, 2.0], [-1.0, -2.0]]), 2)
    assert (same.low, same.high) == pytest.approx((0.8 - 0.7 / 2, 0.8 + 0.1 / 2))
    perfect = mean_interval(np.ones(2), np.array([0.7, 0.6]), np.ones(2), np.zeros((5, 2)), 5)
    assert (perfect.low, perfect.high, perfect.se) == pytest.approx((1 - 0.5 / 2, 1, 0))


def test_auroc_equals_scikit_learn_with_delongs_variance():
    rng = np.random.default_rng(0)
    positive = rng.random(200) < 0.3
    scores = np.round(rng.normal(size=200) + positive, 1)
    theta, share = placements(positive, scores)
    assert theta == pytest.approx(roc_auc_score(positive, scores))
    v10 = np.var(share[positive], ddof=1) / positive.sum() + np.var(share[~positive], ddof=1) / (~positive).sum()
    assert auroc_variance(positive, share, one_row_each(200)) == pytest.approx(v10, rel=1e-9)


def test_newcombes_interval_by_its_equation():
    """Check that both ends solve (A - t)^2 = z^2 V(t) with V of Newcombe's method 5; a perfect AUROC has the upper end 1."""
    rng = np.random.default_rng(1)
    positive = np.repeat([False, True], (26, 13))
    scores = rng.normal(size=39) + 1.2 * positive
    low, high, _ = auroc_interval(positive, scores, one_row_each(39))
    theta, (m, n) = roc_auc_score(positive, scores), (13, 26)
    for end in (low, high):
        half = (m + n) / 2 - 1
        variance = end * (1 - end) * (1 + half * (1 - end) / (2 - end) + half * end / (1 + end)) / (m * n)
        assert (theta - end) ** 2 == pytest.approx(1.959964**2 * variance, rel=1e-4)
    perfect = auroc_interval(positive, positive + 0.0, one_row_each(39))
    assert perfect.high == 1 and 0.5 < perfect.low < 0.95


def test_repeated_rows_keep_the_auroc_interval():
    rng = np.random.default_rng(2)
    positive = rng.random(60) < 0.4
    scores = rng.normal(size=60) + positive
    alone = auroc_interval(positive, scores, one_row_each(60))
    copies = auroc_interval(np.repeat(positive, 4), np.repeat(scores, 4), Clusters.of(np.repeat(np.arange(60), 4)))
    by_rows = auroc_interval(np.repeat(positive, 4), np.repeat(scores, 4), one_row_each(240))
    assert (copies.low, copies.high) == pytest.approx((alone.low, alone.high), abs=0.02)
    assert by_rows.high - by_rows.low < 0.6 * (alone.high - alone.low)


def test_log_t_and_t_against_scipy():
    errors = np.random.default_rng(0).gamma(1.2, 5, 30)
    clusters, influence = one_row_each(30), (errors - errors.mean()) / 30
    se = standard_error(influence, clusters)
    assert se == pytest.approx(stats.sem(errors))
    low, high, _ = t_interval(errors.mean(), se, 30)
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 29, errors.mean(), stats.sem(errors)))
    low, high, _ = t_interval(errors.mean(), se, 30, "log")
    assert np.log([low, high]) == pytest.approx(stats.t.interval(0.95, 29, np.log(errors.mean()), se / errors.mean()))


def test_wilson_against_scipy():
    expected = stats.binomtest(9, 12).proportion_ci(method="wilson")
    assert wilson_ends(0.75, 12) == pytest.approx((expected.low, expected.high))
    assert wilson_ends(1.0, 12)[0] == pytest.approx(stats.binomtest(12, 12).proportion_ci(method="wilson").low)
    wilson, exact = (stats.binomtest(57, 60).proportion_ci(method=method) for method in ("wilson", "exact"))
    assert wilson_ends(57 / 60, 60) == pytest.approx((wilson.low, exact.high)), "the end near 1 is exact"


@pytest.mark.parametrize("hits, people", [(57, 60), (60, 60), (9, 12), (0, 12)])
def test_rates_with_one_row_per_patient_have_the_exact_interval_of_scipy(hits, people):
    """Test a sensitivity of an ejection fraction, and sensitivity and specificity of two classes."""
    exact = stats.binomtest(hits, people).proportion_ci(method="exact")
    ill, right = np.arange(people + 3) < people, np.arange(people + 3) < hits
    sample = ScoringInput(np.where(ill, 35.0, 60.0), np.where(right, 30.0, 55.0))
    rows = Sampler(sample, one_row_each(people + 3), np.zeros(0, bool))
    found = [estimate_metric(load_metric("ejection_fraction_report"), rows)["sensitivity_le_40"]]
    for key, label in (("sensitivity", 1), ("specificity", 0)):
        sample = ScoringInput(np.where(ill, label, 1 - label), np.where(right, label, 1 - label))
        found.append(
            estimate_metric(
                load_metric("classification_report"), Sampler(sample, one_row_each(people + 3), BOTH), [key]
            )[key]
        )
    for one in found:
        assert (one.value, one.low, one.high) == pytest.approx((hits / people, exact.low, exact.high))


def quantile(patients):
    return stats.t.ppf(0.975, patients - 1)


def of_effective(share, size):
    """Return the quantiles of beta distributions that are the exact interval of `share` times `size` of `size` rows."""
    return (
        stats.beta.ppf(0.025, share * size, size - share * size + 1) if share else 0,
        stats.beta.ppf(0.975, share * size + 1, size - share * size) if share < 1 else 1,
    )


def test_design_effect_of_a_rate_by_hand():
    """Of 20 patients with four rows, three have 4, 2 and 1 errors; a made-up one has four equal rows, a design effect of 4."""
    right = np.ones((20, 4))
    right[0], right[1, :2], right[2, 0] = 0, 0, 0
    answers, who = right.ravel(), np.repeat(np.arange(20), 4)
    residuals = 4 * 7 / 80 - np.array([4, 2, 1] + [0] * 17)
    seen = np.sum(residuals**2) / 80**2 / (73 / 80 * 7 / 80 / 80)
    size = 80 / ((3 * seen + 4) / 4) * (quantile(80) / quantile(20)) ** 2
    found = share_of_rows(73 / 80, (answers - 73 / 80) / 80, np.ones(80, bool), Clusters.of(who))
    assert (found.low, found.high) == pytest.approx(of_effective(73 / 80, size))
    whole = share_of_rows(0.9, np.repeat([0.1, -0.9], [72, 8]) / 80, np.ones(80, bool), Clusters.of(who))
    expected = of_effective(0.9, 20 * (quantile(80) / quantile(20)) ** 2)
    assert (whole.low, whole.high) == pytest.approx(expected), "rows of a patient that agree count as one"


@pytest.mark.parametrize("share", [0, 1])
def test_perfect_and_failed_rates_count_effective_patients(share):
    who = np.repeat(np.arange(12), [1] * 8 + [2, 3, 5, 12])
    patients = 30**2 / (8 + 4 + 9 + 25 + 144)
    size = patients * (quantile(30) / quantile(patients)) ** 2
    found = share_of_rows(share, np.zeros(33), np.arange(33) < 30, Clusters.of([*who, 12, 12, 13]))
    assert (found.low, found.high) == pytest.approx(of_effective(share, size))


def test_rates_of_independent_rows_count_no_more_than_the_rows():
    """Every patient has one right and one wrong row, so that patients do not differ at all."""
    answers = np.arange(40) % 2
    found = share_of_rows(0.5, (answers - 0.5) / 40, np.ones(40, bool), Clusters.of(np.arange(40) // 2))
    expected = of_effective(0.5, 40 * (quantile(40) / quantile(20)) ** 2)
    assert (found.low, found.high) == pytest.approx(expected)


def test_mean_sensitivity_of_three_classes_is_resampled():
    rng, truth = np.random.default_rng(0), np.arange(60) % 3
    sample = ScoringInput(truth, np.where(rng.random(60) < 0.8, truth, (truth + 1) % 3))
    rows = Sampler(sample, one_row_each(60), np.ones(3, bool))
    found = estimate_metric(load_metric("classification_report"), rows, ["sensitivity", "balanced_accuracy"])
    assert found["sensitivity"].low == found["balanced_accuracy"].low < found["sensitivity"].value


@pytest.mark.parametrize("hits, people", [(0, 12), (1, 50), (49, 50), (7, 9), (30, 30)])
def test_exact_ends_equal_scipy(hits, people):
    expected = stats.binomtest(hits, people).proportion_ci(0.9, "exact")
    assert exact_ends(hits / people, people, 0.9) == pytest.approx((expected.low, expected.high))


def test_ratio_of_rates_by_hand():
    """The limits of MOVER-R solve (one - t other)² = t² (other - end)² + (one - end)² (Donner and Zou 2012)."""
    one, other = (0.2, 0.12, 0.31), (0.8, 0.66, 0.9)
    low, high = ratio_interval(one, other)
    for t, of_one, of_other in ((low, one[1], other[2]), (high, one[2], other[1])):
        assert (one[0] - t * other[0]) ** 2 == pytest.approx((t * (other[0] - of_other)) ** 2 + (one[0] - of_one) ** 2)
    assert low < 0.25 < high and ratio_interval(one, other, -0.5)[1] > high
    assert ratio_interval((0.0, 0.0, 0.1), other)[0] == 0 and ratio_interval(one, (0.0, 0.0, 0.3)) == (0, np.inf)


def test_pessimistic_error_includes_one_worst_case():
    """Check 29 patients by hand, and one more at the largest distance from the median; the width is unchanged."""
    rng = np.random.default_rng(3)
    truth = rng.normal(55, 12, 29)
    errors = np.abs(rng.normal(0, 6, 29))
    rows = Sampler(ScoringInput(truth, truth + errors), one_row_each(29), np.zeros(0, bool))
    found = estimate_metric(load_metric("mae"), rows)["mae"]
    moved = (errors.sum() + np.abs(truth - np.median(truth)).max()) / 30
    reach = stats.t.ppf(0.975, 28) * stats.sem(errors)
    assert found.high == pytest.approx(moved * np.exp(reach / moved))
    assert found.low == pytest.approx(errors.mean() * np.exp(-reach / errors.mean())), "the other end is unchanged"


def test_average_precision_has_an_interval_from_fifty_patients_with_the_finding():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], (150, 50))
    share = np.clip(0.3 * truth + 0.7 * rng.random(200), 0.01, 0.99)
    sample = ScoringInput(truth, (share > 0.5).astype(int), np.stack([1 - share, share], axis=1))
    report = load_metric("classification_report")
    enough = estimate_metric(report, Sampler(sample, one_row_each(200), BOTH), ["auprc"])["auprc"]
    assert enough.low < enough.value < enough.high
    few = estimate_metric(report, Sampler(sample.take(np.arange(1, 199)), one_row_each(198), BOTH), ["auprc"])["auprc"]
    assert np.isnan(few.low) and "50 patients" in few.reason


@pytest.mark.parametrize("name", [n for n in list_metrics() if hasattr(load_formula(n), "influence")])
def test_influence_is_the_derivative_in_the_weight_of_a_row(name):
    """Compare with finite differences of weights; for formulas without weights, with a row that counts twice."""
    rng, formula = np.random.default_rng(0), load_formula(name)
    given = {"references": np.round(rng.normal(48, 8, 60)), "predictions": np.round(rng.normal(48, 8, 60))}
    if name in ("classification_report", "calibration_report"):
        shares = np.round(rng.dirichlet([1, 1], 60), 2)
        given = {"references": rng.integers(0, 2, 60), "predictions": shares}
    influence = formula.influence(**given)
    step = 1e-5
    for row in range(0, 60, 7):
        if hasattr(formula, "compute_resamples"):
            weights = np.ones((2, 60))
            weights[:, row] += [step, -step]
            ends = formula.compute_resamples(**given, weights=weights)
            for key, column in influence.items():
                assert (ends[key][0] - ends[key][1]) / (2 * step) == pytest.approx(column[row], abs=1e-6), key
        else:
            copies = {key: np.concatenate([values, values[[row]]]) for key, values in given.items()}
            more, once = formula.compute(**copies), formula.compute(**given)
            for key, column in influence.items():
                assert more[key] - once[key] == pytest.approx(column[row], abs=0.02), key


def test_every_metric_names_a_known_interval():
    for name in list_metrics():
        metric = load_metric(name)
        assert {number.method for number in metric.numbers.values()} <= set(METHODS), name


def test_fewer_than_ten_patients_have_no_interval():
    sample = ScoringInput(np.arange(30.0), np.arange(30.0) + 1)
    found = estimate_metric(load_metric("mae"), Sampler(sample, Clusters.of(np.arange(30) % 9), np.zeros(0, bool)))[
        "mae"
    ]
    assert found.value == 1 and np.isnan(found.low) and found.reason == "fewer than 10 patients: no interval"


def test_binary_report_values_are_in_intervals():
    rng = np.random.default_rng(0)
    truth = (rng.random(120) < 0.4).astype(int)
    share = np.clip(0.3 * truth + 0.7 * rng.random(120), 0.01, 0.99)
    sample = ScoringInput(truth, (share > 0.5).astype(int), np.stack([1 - share, share], axis=1))
    rows = Sampler(sample, Clusters.of(np.arange(120) // 2), BOTH)
    for name in ("f1_macro", "classification_report", "calibration_report"):
        for key, found in estimate_metric(load_metric(name), rows).items():
            if key == "ece":
                assert np.isnan(found.low) and "biased" in found.reason
            elif key in ("mean_probability", "observed_share"):
                assert np.isnan(found.low) and "compare the two means" in found.reason
            elif key == "auprc":
                assert np.isnan(found.low) and "fewer than 50 patients have the finding" in found.reason
            else:
                assert found.low < found.value < found.high and found.method, key


def test_students_interval_of_a_correlation_is_symmetric_in_fishers_z():
    # By the delta method, the standard error of z is se / (1 - r^2): z = arctanh(.5) +- 2.2621572 x .06 / .75.
    found = t_interval(0.5, 0.06, 10, "fisher_z")
    expected = np.tanh(0.5493061443 + np.array([-1, 1]) * 2.2621571628 * 0.08)
    assert [found.low, found.high] == pytest.approx(expected, abs=1e-9)
