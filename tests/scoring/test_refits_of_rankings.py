"""Test that rankings cover the training: refits of the same draws widen differences, other draws compare answers only."""

from dataclasses import replace

import numpy as np
import pytest

from cardiobench.results.refits import NO_TRAINING, TRAINING_PATIENTS, Refits
from cardiobench.scoring.pairs import decide_pairs
from cardiobench.scoring.ranking import TaskScore, _differences
from cardiobench.scoring.refits import ANSWERS, variation_of_means
from cardiobench.stats.variability import BOTH, TEST


def refits(scores, draws="x", varies=TRAINING_PATIENTS):
    return Refits(varies, 0, draws, len(scores), {"auroc": tuple(scores)})


def scored(score, moved, kept=None):
    names = [f"p{n}" for n in range(len(moved))]
    return TaskScore(score, "toy", names, moved, -moved, np.ones(len(moved), dtype=int), len(moved) - 1.0, kept)


def test_refits_are_averaged_over_tasks_first():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 3, 20))
    found = variation_of_means([refits(row) for row in one], [refits(row) for row in other])
    assert found.covers == BOTH and found.refits == 20
    assert found.spread == pytest.approx((one.mean(axis=0) - other.mean(axis=0)).std(ddof=1))
    half = variation_of_means(
        [refits(one[0]), refits((), varies=NO_TRAINING)], [refits(other[0]), refits((), varies=NO_TRAINING)]
    )
    assert half.spread == pytest.approx((one[0] - other[0]).std(ddof=1) / 2), "a task without training adds nothing"


@pytest.mark.parametrize("kept", [None, refits(np.arange(20.0), draws="y"), refits(np.arange(19.0))])
def test_missing_or_other_refits_compare_answers(kept):
    assert variation_of_means([refits(np.arange(20.0))], [kept]).covers == ANSWERS
    moved = np.random.default_rng(0).normal(0, 0.001, (2, 50))
    models = [{"t": scored(0.8, moved[0], refits(np.arange(20.0)))}, {"t": scored(0.6, moved[1], kept)}]
    standings = decide_pairs(["a", "b"], np.zeros(2), [_differences(models, ["t"])], [True])
    assert standings.sentence("a", "b").startswith("the answers of a and of b differ")


def test_spread_of_refits_enters_the_standard_error():
    rng = np.random.default_rng(0)
    moved, kept = rng.normal(0, 0.001, (2, 50)), rng.normal(0, 0.05, (2, 20))
    without = [{"t": scored(score, row)} for score, row in zip((0.80, 0.77), moved, strict=True)]
    models = [{"t": replace(one["t"], refits=refits(row))} for one, row in zip(without, kept, strict=True)]
    plain, found = _differences(without, ["t"]), _differences(models, ["t"])
    spread = (kept[0] - kept[1]).std(ddof=1)
    assert found.se[0, 1] == pytest.approx(np.hypot(plain.se[0, 1], spread)) and found.freedom[0, 1] < 25
    assert plain.p_values()[0, 1] < 0.05 < found.p_values()[0, 1] and not found.answers_only.any()
    free = [{"t": replace(one["t"], refits=refits((), varies=NO_TRAINING))} for one in without]
    assert _differences(free, ["t"]).se[0, 1] == plain.se[0, 1] and not _differences(free, ["t"]).answers_only.any()
    assert variation_of_means([refits((), varies=NO_TRAINING)], [refits((), varies=NO_TRAINING)]).covers == TEST
