"""Test the number of patients for the same score: by hand, against scikit-learn, and against simulated factors."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.isotonic import IsotonicRegression

from benchmarks.validity.labels_saved import Phantom
from cardiobench.extensions.labels_saved.curves import CurveSet, curves_of, decide_savings
from cardiobench.extensions.labels_saved.savings import Curve, monotone, patients_needed, saving
from cardiobench.stats.holm import holm
from cardiobench.stats.paired import two_sided
from cardiobench.stats.variability import joint_resamples

PATIENTS = np.array([10, 100, 1000])


def curve(scores, resamples=None, name="a", higher=True, tested=50, **more):
    scores = np.array(scores, dtype=float)
    resamples = scores[None] if resamples is None else np.array(resamples, dtype=float)
    return Curve(name, more.get("patients", PATIENTS), scores, resamples, higher, tested)


def test_patients_are_interpolated_in_their_logarithm():
    curves = np.array([[0.5, 0.7, 0.9]] * 5)
    needed = patients_needed(PATIENTS, curves, np.array([0.4, 0.6, 0.7, 0.9, 0.95]))
    assert needed == pytest.approx([0, 10**1.5, 100, 1000, np.inf])


def test_monotone_curves_equal_scikit_learn():
    curves = np.random.default_rng(0).normal(size=(20, 5))
    expected = [IsotonicRegression().fit_transform(np.arange(5), one) for one in curves]
    assert monotone(curves) == pytest.approx(np.array(expected))


def test_factor_is_reversed_with_the_pair():
    better, worse = curve([0.5, 0.7, 0.9]), curve([0.3, 0.5, 0.7])
    assert saving(better, worse).factor == pytest.approx(10)
    assert saving(worse, better).factor == pytest.approx(0.1)
    assert saving(better, better).factor == pytest.approx(1)
    errors = curve([9, 7, 5], higher=False), curve([11, 9, 7], higher=False)
    assert saving(*errors).factor == pytest.approx(10), "errors fall"


@pytest.mark.parametrize(
    ("scores", "others", "factor", "needed"),
    [
        ([0.7, 0.6, 0.65], [0.7, 0.6, 0.65], 1, 0),
        ([0.5, 0.8, 1.0], [0.5, 0.8, 1.0], 1, 1000),
        ([0.9, 1.0, 1.0], [0.6, 0.8, 1.0], 10, 100),
        ([1.0, 1.0, 1.0], [0.6, 0.8, 1.0], np.inf, 0),
    ],
    ids=["copy without a rise", "copy", "both perfect in the end", "perfect from the start"],
)
def test_equal_final_scores_give_no_better_learner(scores, others, factor, needed):
    """The factor of the reversed pair is the inverse, and neither needs fewer patients by the rule for all comparisons."""
    one, other = (curve(each, [each] * 40, name) for each, name in ((scores, "a"), (others, "b")))
    found, turned = saving(one, other), saving(other, one)
    assert found.factor == pytest.approx(factor) and turned.factor == pytest.approx(1 / factor)
    assert found.needed == pytest.approx(needed)
    assert {found.conclusion, turned.conclusion} == {"cannot be told apart"}
    assert found.compared.found.p_value == 1


def resampled(ends, seed, name):
    """Return a curve whose final score has an offset and varies by 0.05 over 400 resamples."""
    noise = np.random.default_rng(seed).normal(0, 0.05, 400)
    middle, last = 0.7 + 0 * noise, 0.8 + ends + noise
    return curve([0.5, 0.7, 0.8 + ends], np.column_stack([0.5 + 0 * noise, middle, last]), name)


def test_all_pairs_of_a_page_are_decided_by_the_common_rule():
    """Compute p-values and Holm's correction of both tasks by hand from the resamples."""
    first = [resampled(0.2, 1, "a"), resampled(0.0, 2, "b"), resampled(0.01, 3, "c")]
    second = [resampled(0.14, 4, "a"), resampled(0.0, 5, "b")]
    (of_first, of_second), tested = decide_savings([CurveSet("x", {}, tuple(each), ()) for each in (first, second)])
    assert tested == 4 and [(one.name, one.other) for one in of_second] == [("a", "b"), ("b", "a")]
    pairs = [(first[0], first[1]), (first[0], first[2]), (first[1], first[2]), (second[0], second[1])]
    raw = [two_sided(one.rising()[1][:, -1] - other.rising()[1][:, -1]) for one, other in pairs]
    found = {(one.name, one.other): one for one in of_first}
    shown = [found["a", "b"], found["a", "c"], found["b", "c"], of_second[0]]
    assert [one.compared.p_adjusted for one in shown][2:] == pytest.approx(holm(raw).tolist()[2:])
    assert all(one.compared.p_adjusted <= p for one, p in zip(shown, holm(raw), strict=True)), "few draws: normal tail"
    assert [one.conclusion for one in shown] == ["needs fewer patients"] * 2 + ["cannot be told apart"] * 2
    assert found["b", "a"].conclusion == "needs more patients"
    assert shown[3].compared.found.p_value < 0.05 < shown[3].compared.p_adjusted, "only if it stood alone"


def test_too_few_test_patients_give_no_conclusion():
    few = [curve([0.3, 0.5, end], tested=9, name=name) for name, end in (("a", 0.9), ("b", 0.6))]
    (savings,), tested = decide_savings([CurveSet("x", {}, tuple(few), ())])
    assert tested == 0 and {one.conclusion for one in savings} == {"too few to say"}


def test_unreached_scores_are_reported_as_bounds():
    high, low, steep = [0.8, 0.85, 0.9], [0.3, 0.5, 0.7], [0.5, 0.8, 0.95]
    better = curve([0.5, 0.7, 0.9], [[0.5, 0.7, 0.9]] * 20 + [high] * 20)
    worse = curve(low, [steep] * 10 + [low] * 30, "b")
    found, turned = saving(better, worse), saving(worse, better)
    assert (found.text, found.factor_text) == (
        "100 (95 % interval: fewer than 10 to more than all 1000)",
        "10 [0.46, > 100]",
    )
    assert (turned.text, turned.factor_text) == (
        "more than all 1000 (95 % interval: 464 to more than all 1000)",
        "0.1 [< 0.01, 2.2]",
    )
    assert saving(curve(high), curve(low)).text == "fewer than 10 (as in 95 % of the resamples)"
    assert turned.sentence == "needs more than all 1000 patients\n(95 % interval: 464 to more than all 1000)"
    assert "no interval" in saving(curve([0.5, 0.7, 0.9], tested=9), curve(low)).text


def test_curves_of_other_patients_are_not_compared():
    one, other = curve([0.1, 0.2, 0.3]), Curve("b", PATIENTS, np.zeros(3), np.zeros((1, 3)), True, 50, "", "x")
    with pytest.raises(ValueError, match="different patients or draws"):
        saving(one, other)


def test_resamples_have_the_variance_of_other_training_patients():
    """Check by hand: draws of 30 % with variance 2 equal independent draws with 2 / .7; five draws share 30 % of their patients."""
    scores = [np.array([-2.0, -1, 0, 1, 2]) * np.sqrt(0.8), np.array([0.0])]
    still = [np.zeros((5, 100_000)), np.zeros((1, 100_000))]
    found = joint_resamples(scores, still, (0.3, 1.0), 0)
    of_one = 2 / 0.7
    assert found.mean(axis=0) == pytest.approx([0, 0], abs=0.02)
    assert found.var(axis=0) == pytest.approx([of_one * (0.3 + 0.7 / 5), of_one * 0.3**2], rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [2, 4])
def test_interval_covers_a_planted_factor(factor):
    """Count covered phantoms: for a true coverage of 93 %, nearly all draws have at least 34 of 40."""
    found = [Phantom(factor, test=200).saving(seed) for seed in range(40)]
    covered = sum(one.low <= factor <= one.high for one in found)
    assert covered >= 34
    assert np.median([one.low for one in found]) > factor / 10 and np.median([one.high for one in found]) < factor * 6


def test_reference_is_curve_with_worst_end():
    crossing = curve([0.4, 0.7, 0.6]), curve([0.3, 0.5, 0.65], name="b")
    assert CurveSet("x", {}, crossing, ()).reference.name == "a"
    errors = curve([9, 5, 3], higher=False), curve([9, 4, 3.5], name="b", higher=False)
    assert CurveSet("x", {}, errors, ()).reference.name == "b"


def test_curve_needs_two_points():
    facts = {"score": 0.5, "better": "higher", "test_patients": 9, "reference": None}
    points = pd.DataFrame(
        [{"learner": name, "patients": n, **facts} for name, n in (("two", 8), ("two", 9), ("one", 9))]
    )
    drawn = pd.DataFrame({"two at 8": [0.5], "two at 9": [0.5], "one at 9": [0.5]})
    tables = {"curve": points, "resamples": drawn}
    found = curves_of([SimpleNamespace(models=[{"name": "m"}], subject="x", options={}, tables=tables)])
    assert [one.name for one in found.curves] == ["m, two"] and found.unpaired == ("m, one",)
