"""Compare the vectorised bootstrap with a plain loop and with known truth."""

import numpy as np
import pytest

from cardiobench.metrics.load import load_metric
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.number import Number
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.stats.bootstrap import estimate, patient_weights, percentile_interval, resample, resampled_counts


def bootstrap(metric, sample, patients, resamples, seed=0):
    drawn = resample(lambda weights: metric.resamples(sample, weights), patients, resamples, seed)
    return {key: estimate(value, drawn[key], patients) for key, value in metric.value(sample).items()}


def plain_loop(metric, sample, patients, resamples, seed):
    """Implement the bootstrap directly: draw patients, concatenate their rows, score."""
    rng = np.random.default_rng(seed)
    names = sorted(set(patients))
    rows_of = {name: np.flatnonzero(patients == name) for name in names}
    values = []
    for _ in range(resamples):
        drawn = rng.integers(0, len(names), size=len(names))
        rows = np.concatenate([rows_of[names[i]] for i in drawn])
        values.append(metric.compute(references=sample.y_true[rows], predictions=sample.y_pred[rows]))
    return {key: np.array([value[key] for value in values]) for key in values[0]}


def clustered(kind, n=90, patients=31, seed=3):
    rng = np.random.default_rng(seed)
    who = np.array([f"p{i}" for i in rng.integers(0, patients, n)])
    if kind == "mae":
        truth = np.round(rng.normal(55, 10, n), 1)
        return ScoringInput(truth, truth + rng.normal(0, 6, n)), who
    truth = rng.integers(0, 3, n)
    return ScoringInput(truth, np.where(rng.random(n) < 0.6, truth, rng.integers(0, 3, n))), who


@pytest.mark.parametrize("name", ["mae", "f1_macro", "ari"])
def test_equals_the_plain_loop(name):
    sample, patients = clustered(name)
    metric = load_metric(name)
    drawn = resample(lambda weights: metric.resamples(sample, weights), patients, resamples=200, seed=11)
    expected = plain_loop(metric, sample, patients, 200, 11)
    assert np.abs(drawn[name] - expected[name]).max() < 1e-9


def test_result_does_not_depend_on_the_chunks():
    patients = np.arange(700)  # One chunk holds 374 resamples.
    chunks = list(patient_weights(patients, resamples=1000, seed=5))
    assert len(chunks) > 1
    rng = np.random.default_rng(5)
    draws = [np.bincount(rng.integers(0, 700, 700), minlength=700) for _ in range(1000)]
    order = np.argsort(patients.astype(str))
    assert (np.concatenate(chunks)[:, order] == np.array(draws)).all()


def test_rows_of_a_patient_are_drawn_together():
    patients = np.array(["b", "a", "b", "c", "a", "b"])
    weights = np.concatenate(list(patient_weights(patients, resamples=50, seed=0)))
    assert (weights[:, 0] == weights[:, 2]).all() and (weights[:, 0] == weights[:, 5]).all()
    assert (weights[:, 1] == weights[:, 4]).all()
    assert (weights[:, [0, 1, 3]].sum(axis=1) == 3).all()


def test_metric_without_weights_gives_the_same_by_the_loop():
    sample, patients = clustered("f1_macro")
    metric = load_metric("f1_macro")
    slow = Metric(metric.name, metric.compute, metric.numbers)
    fast, looped = (bootstrap(m, sample, patients, resamples=100, seed=2)["f1_macro"] for m in (metric, slow))
    assert (fast.value, fast.n, fast.n_patients) == (looped.value, looped.n, looped.n_patients)
    assert fast.low == pytest.approx(looped.low, abs=1e-12) and fast.high == pytest.approx(looped.high, abs=1e-12)


def test_percentiles_of_known_values():
    assert percentile_interval(np.arange(1001.0)) == pytest.approx((25, 975))
    assert percentile_interval(np.array([np.nan, *np.arange(1001.0), np.nan])) == pytest.approx((25, 975))
    assert np.isnan(percentile_interval(np.full(5, np.nan))).all()


def test_nine_patients_have_no_interval_and_a_note():
    sample, _ = clustered("mae")
    found = bootstrap(load_metric("mae"), sample, np.arange(90) % 9, 50)["mae"]
    assert found.value > 0 and np.isnan(found.low) and np.isnan(found.high)
    assert found.n_patients == 9 and "fewer than 10 patients" in found.reason


def test_undefined_resamples_are_counted():
    def spread(references, predictions):
        return {"spread": np.nan if np.ptp(references) == 0 else float(np.ptp(references))}

    metric = Metric("spread", spread, {"spread": Number("spread", None)})
    sample = ScoringInput(np.repeat([1.0, 2.0], (11, 1)), np.zeros(12))
    found = bootstrap(metric, sample, np.arange(12), resamples=400, seed=0)["spread"]
    assert (found.low, found.high) == (1.0, 1.0)
    count = int(found.reason.split()[2])
    assert 0.31 * 400 < count < 0.40 * 400  # Share of resamples with one value: (11/12)^12 + (1/12)^12 = 0.352.


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mae", "f1_macro"])
def test_intervals_cover_the_truth(name):
    """Simulate 1000 studies of 150 patients with 1-9 rows each, with errors shared within a patient.

    95 % intervals by patient cover the truth in 93-97 % of studies, intervals by row visibly less often.
    """
    rng = np.random.default_rng(2024)
    metric = load_metric(name)

    def study(patients):
        size = rng.integers(1, 10, patients)
        who = np.repeat(np.arange(patients), size)
        if name == "mae":
            error = rng.normal(0, 6, patients)[who] + rng.normal(0, 2, len(who))
            return ScoringInput(np.full(len(who), 50.0), 50.0 + error), who
        truth = (rng.random(patients) < 0.4)[who].astype(int)
        wrong = rng.random(len(who)) < rng.beta(0.4, 1.2, patients)[who]
        return ScoringInput(truth, np.where(wrong, 1 - truth, truth)), who

    truth = metric.value(study(400_000)[0])[name]
    hits = {"patients": 0, "rows": 0}
    for repetition in range(1000):
        sample, who = study(150)
        for unit, ids in (("patients", who), ("rows", np.arange(len(who)))):
            found = bootstrap(metric, sample, ids, resamples=300, seed=repetition)[name]
            hits[unit] += found.low <= truth <= found.high
    assert 930 <= hits["patients"] <= 970, hits
    assert hits["rows"] < 850, hits


def test_patient_counts_equal_weighted_rows():
    sample, patients = clustered("f1_macro")
    codes = np.stack([sample.y_true, sample.y_pred], axis=1)
    counts = resampled_counts(codes, patients, 40, seed=5)
    weights = np.concatenate(list(patient_weights(patients, 40, seed=5)))
    for column in (0, 1):
        assert np.array_equal(counts[:, column], weights @ (codes[:, column, None] == np.arange(3)))
