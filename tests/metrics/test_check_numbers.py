"""Test messages of `check_metric` for formulas that contradict their number table."""

import numpy as np
import pytest

from cardiobench.core.errors import BadConfig
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.number import Number
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler, estimate_metric
from cardiobench.testing.metric import check_numbers

ROWS = {"references": np.array([50.0, 60.0, 70.0]), "predictions": np.array([54.0, 70.0, 70.0])}


def close(references, predictions):
    return {"close": float(np.mean(np.abs(references - predictions) <= 5))}  # 2 of 3 are equal.


SHARE = Number("close", range=(0, 1))


def metric(number=SHARE, **functions):
    return Metric("close", close, {"close": number}, **functions)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (metric(Number("close", range=(0, 0.5))), "close is 0.666667, outside its range 0 to 0.5"),
        (metric(Number("close", range=(1, np.inf))), "outside its range 1 to inf"),
        (
            metric(Number("close", range=(0, 1), interval="bootstrap")),
            "names the interval 'bootstrap'; expected smoothed",
        ),
        (metric(Number("close", range=(0, 1), interval="t")), "'t', which needs a function influence"),
        (metric(floor=lambda references, classes: {"close": (30.0, "luck")}), "the floor of close is 30.0, 'luck'"),
        (metric(floor=lambda references, classes: {"near": (0.3, "luck")}), "the floor of near"),
        (metric(per_row=lambda references, predictions: {"close": np.ones(3)}), "mean of its per_row 1.0"),
    ],
)
def test_violated_declarations_are_named(wrong, message):
    with pytest.raises(AssertionError, match=message):
        check_numbers(wrong, ROWS)


def test_possible_share_without_a_range_is_warned_of():
    with pytest.warns(UserWarning, match=r"close is 0.666667 and has no range. If it is a share, declare NUMBERS = "):
        check_numbers(metric(Number("close")), ROWS)


@pytest.mark.filterwarnings("error")
def test_correct_declarations_pass():
    def rows(references, predictions):
        return {"close": np.abs(references - predictions) <= 5}

    check_numbers(metric(per_row=rows, floor=lambda references, classes: {"close": (1 / 3, "the mean")}), ROWS)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (Number("close", range=(0, 0.5)), r"metric close: close is 0.666667, outside its declared range 0 to 0.5"),
        (Number("close", interval="bootstrap"), "close names the interval 'bootstrap'. Intervals: smoothed,"),
        (Number("near"), "near is declared, but compute returns close"),
    ],
)
def test_undeclared_score_is_refused(number, message):
    rows = Sampler(ScoringInput(*ROWS.values()), Clusters.of(np.arange(3)), np.zeros(0, bool))
    with pytest.raises(BadConfig, match=message):
        estimate_metric(Metric("close", close, {number.key: number}), rows)
