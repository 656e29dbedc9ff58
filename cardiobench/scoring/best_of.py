"""The best of several submissions on one test set: correction of its p-value, interval and verdict."""

import math
from dataclasses import replace

import scipy

from cardiobench.results.score_result import ScoreResult
from cardiobench.results.verdict import LEVEL, REVERSED_LEVEL, Verdict


def best_of(result: ScoreResult, submissions: int) -> ScoreResult:
    """Return a result corrected for the number of its owner's submissions for the same task: p times k, interval at level 1 - .05 / k.

    The interval is widened by the ratio of Student's quantiles, within the range of the metric.

    Args:
        result: Result of one submission.
        submissions: Number of submissions, k.
    """
    if submissions < 2 or result.outdated or result.verdict.word.rank is Verdict.INCOMPARABLE.rank:
        return result
    verdict, score, number = result.verdict, result.score, result.number()
    freedom = max(min(score.n_patients, verdict.n_effective) - 1, 1)
    wide, usual = (scipy.stats.t.ppf(1 - LEVEL / 2 / k, freedom) for k in (submissions, 1))
    factor = float(wide / usual)
    low = max(score.value - factor * (score.value - score.low), number.range[0])
    high = min(score.value + factor * (score.high - score.value), number.range[1])
    below, above = (verdict.difference - factor * (verdict.difference - end) for end in (verdict.low, verdict.high))
    p = min(1.0, verdict.p_adjusted * submissions)
    word = _word(verdict.word, below, above, p, verdict.p_reversed * submissions)
    sentence = verdict.sentence if word is verdict.word else f"as one of {submissions} submissions (p = {p:.2g})"
    return replace(
        result,
        overall={**result.overall, result.metric: replace(score, low=low, high=high)},
        verdict=replace(verdict, word=word, sentence=sentence, low=below, high=above, p_adjusted=p),
    )


def _word(word: Verdict, low: float, high: float, p: float, p_reversed: float) -> Verdict:
    """Return the verdict after correction."""
    if word is Verdict.FEW or math.isnan(low):
        return word
    if word is Verdict.REVERSED:
        return word if high < 0 and p_reversed < REVERSED_LEVEL else Verdict.NOTHING
    if p >= LEVEL:
        return Verdict.NOTHING
    return Verdict.INFORMED if word is Verdict.ABOVE and low <= 0 else word
