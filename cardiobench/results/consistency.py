"""Consistency checks of a result, which detect one that was edited by hand."""

import math
from collections.abc import Sequence

from cardiobench.metrics.load import find_numbers
from cardiobench.metrics.number import TOLERANCE, Number
from cardiobench.results.score_result import Estimate, ScoreResult
from cardiobench.results.verdict import Rank

LEVEL = 0.05
BEYOND = {"t": "both", "log_t": "high", "log_t_complement": "low"}
"""Method of an interval -> the ends that may lie outside the range of the number."""


def check_consistency(result: ScoreResult) -> list[str]:
    """Return what cannot be true of a score that was computed; empty for a result as it should be."""
    if result.metric not in result.overall or "best_uninformed" not in result.floors:
        return [f"it has no {result.metric} or no floor"]
    wrong = [
        f"{name} {estimate.value:g} [{estimate.low:g}, {estimate.high:g}] is no score"
        for name, estimate in result.overall.items()
        if not _possible(estimate, find_numbers(name) or (result.number(name),))
    ]
    scored, expected = result.scored, result.expected
    if expected is not None and (scored > expected or result.score.n > expected):
        wrong.append(f"{scored} scored of {expected} expected, n = {result.score.n}")
    sign = 1 if result.higher_is_better else -1
    margin, verdict = sign * (result.score.value - result.floor.value), result.verdict
    judged_on_score = result.bounds is None and not math.isnan(margin)
    if judged_on_score and not math.isclose(margin, verdict.difference, abs_tol=TOLERANCE):
        wrong.append(f"score minus floor is {margin:.6g}, it says {verdict.difference:.6g}")
    if verdict.word.rank is Rank.WINS and not (verdict.low > 0 and verdict.p_adjusted < LEVEL):
        wrong.append(f"{verdict.word} with an interval from {verdict.low:.6g} and p = {verdict.p_adjusted:.6g}")
    return wrong


def _possible(estimate: Estimate, numbers: Sequence[Number]) -> bool:
    """Tell whether an estimate can be one of a number, or of one of several that share a key."""
    beyond = "" if estimate.covers == Estimate.covers else "both"
    beyond = beyond or BEYOND.get(estimate.method, "")
    values = [estimate.value]
    values += [estimate.low] if beyond not in ("low", "both") else []
    values += [estimate.high] if beyond not in ("high", "both") else []
    inside = any(all(number.possible(value) for value in values) for number in numbers)
    return inside and not estimate.low > estimate.high and estimate.n_patients <= estimate.n
