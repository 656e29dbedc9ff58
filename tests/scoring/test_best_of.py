"""Compare the best of several submissions with hand-worked values."""

import dataclasses

import pytest
from scipy import stats

from cardiobench.results.verdict import Verdict
from cardiobench.scoring.best_of import best_of
from tests.results.test_formatting import result


def above(p=0.004, low=0.56):
    made = result(0.7)
    score = dataclasses.replace(made.score, value=0.7, low=low, high=0.82, se=0.06, n=41, n_patients=41)
    floor = dataclasses.replace(made.floor, value=0.5)
    verdict = dataclasses.replace(
        made.verdict,
        word="above the floor",
        difference=0.2,
        low=low - 0.5,
        high=0.32,
        p_value=p,
        p_adjusted=p,
        n_effective=41,
    )
    return dataclasses.replace(
        made, overall={**made.overall, made.metric: score}, floors={"best_uninformed": floor}, verdict=verdict
    )


def test_p_value_and_interval_are_corrected():
    one = best_of(above(), 5)
    factor = stats.t.ppf(1 - 0.025 / 5, 40) / stats.t.ppf(0.975, 40)
    assert one.verdict.p_adjusted == pytest.approx(0.02)
    assert (one.score.low, one.score.high) == pytest.approx((0.7 - factor * 0.14, 0.7 + factor * 0.12))
    assert one.verdict.low == pytest.approx(one.score.low - 0.5)
    assert one.verdict.word is Verdict.ABOVE


def test_interval_is_widened_for_the_effective_number_of_patients():
    few = above()
    few = dataclasses.replace(few, verdict=dataclasses.replace(few.verdict, n_effective=12))
    factor = stats.t.ppf(1 - 0.025 / 5, 11) / stats.t.ppf(0.975, 11)
    assert best_of(few, 5).score.low == pytest.approx(0.7 - factor * 0.14)


@pytest.mark.parametrize(("p", "word"), [(0.001, Verdict.REVERSED), (0.004, Verdict.NOTHING)])
def test_reversed_verdict_is_kept_below_its_level(p, word):
    """Five submissions: 0.005 is below the level of 0.01, and 0.02 is not."""
    made = above()
    verdict = dataclasses.replace(
        made.verdict, word=Verdict.REVERSED, difference=-0.3, low=-0.4, high=-0.2, p_reversed=p
    )
    assert best_of(dataclasses.replace(made, verdict=verdict), 5).verdict.word is word


def test_selection_among_submissions_is_corrected_for():
    assert best_of(above(p=0.02), 5).verdict.word is Verdict.NOTHING
    assert best_of(above(low=0.51), 5).verdict.word is Verdict.INFORMED
    assert best_of(above(), 1) == above()
    assert best_of(above(p=0.3), 50).verdict.p_adjusted == 1.0
