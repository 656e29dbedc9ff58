"""The rule that gives a score its verdict, and the sentence that gives the reason."""

import math

from cardiobench.results.score_result import Estimate, Floor, Judgement
from cardiobench.results.verdict import Verdict
from cardiobench.scoring.families import LEVEL, Family
from cardiobench.stats.bootstrap import MIN_PATIENTS
from cardiobench.stats.information import Information
from cardiobench.tasks.scored import Rarest

SURE, ENOUGH = 5, 10
"""Patients of the rarest class below which there is no verdict at all, and below which there is no negative one."""
DETECTABLE = 3.5
"""Standard errors of a difference that is seen in 70 to 90 of 100 test sets."""


def judge(
    estimate: Estimate,
    floor: Floor,
    information: Information,
    family: Family | None,
    higher_is_better: bool,
    rarest: Rarest | None = None,
) -> Judgement:
    """Judge a score by its floor and by the information test.

    Args:
        estimate: the score with its interval; of the worst case where answers are missing.
        floor: best expected score without looking at the recording.
        information: outcome of the test.
        family: primary family of the result, all of whose other members count as p = 1; None for an exploratory result.
        higher_is_better: direction of the metric.
        rarest: the rarest class of the test set; None for numbers.
    """
    sign = 1 if higher_is_better else -1
    ends = sorted(sign * (end - floor.value) for end in (estimate.low, estimate.high))
    adjusted = family.adjust(information.p_value) if family else information.p_value
    word = _word(ends[0], ends[1], adjusted, math.isnan(floor.value), estimate.n_patients, rarest)
    detectable = DETECTABLE * estimate.se
    return Judgement(
        word=word,
        sentence=_sentence(word, adjusted, detectable, estimate.n_patients, floor, rarest),
        difference=sign * (estimate.value - floor.value),
        low=ends[0],
        high=ends[1],
        p_value=information.p_value,
        p_adjusted=adjusted,
        statistic=information.statistic,
        family=family.name if family else "",
        detectable=detectable,
    )


def _word(low: float, high: float, p: float, no_floor: bool, patients: int, rarest: Rarest | None) -> Verdict:
    if no_floor:
        return Verdict.INCOMPARABLE
    if patients < MIN_PATIENTS or math.isnan(low) or (rarest and rarest.patients < SURE):
        return Verdict.FEW
    informed = p < LEVEL
    if low > 0 and informed:
        return Verdict.ABOVE
    if rarest and rarest.patients < ENOUGH and (high < 0 or not informed):
        return Verdict.FEW
    if high < 0:
        return Verdict.BELOW
    return Verdict.INFORMED if informed else Verdict.NOTHING


def _sentence(word: Verdict, p: float, detectable: float, patients: int, floor: Floor, rarest: Rarest | None) -> str:
    of = f"p = {p:.2g}" if p >= 0.001 else "p < 0.001"
    if word == Verdict.ABOVE:
        return (
            f"the whole 95 % interval is above the floor, and the same answers dealt to other patients do worse ({of})"
        )
    if word == Verdict.INFORMED:
        return (
            f"the answers know the patient ({of}), but the interval is not above the floor: a sound ranking, badly cut or "
            "badly calibrated, or too few patients"
        )
    if word == Verdict.NOTHING:
        return (
            f"the same answers dealt to other patients score as well ({of}); only differences above about "
            f"{detectable:.2g} are usually seen with these {patients} patients"
        )
    if word == Verdict.BELOW:
        informed = f"; the answers carry information ({of})" if p < LEVEL else ""
        return f"the whole 95 % interval is below what guessing or a constant reaches{informed}"
    if word == Verdict.INCOMPARABLE:
        return floor.reason or "there is no floor for this metric"
    if word != Verdict.FEW:
        return word.meaning
    if rarest and rarest.patients < ENOUGH:
        return f"{rarest.patients} patients with {rarest.name}: a good model would often not be recognised"
    return f"{patients} patients: there is no interval below {MIN_PATIENTS}"
