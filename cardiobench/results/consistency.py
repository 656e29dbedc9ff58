"""Check results for inconsistencies that indicate manual edits."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from cardiobench.metrics.load import find_numbers
from cardiobench.metrics.number import TOLERANCE, Number
from cardiobench.results.cost import Cost
from cardiobench.results.record import NOT_SEEN, reason_given
from cardiobench.results.refits import NO_TRAINING, TRAINING_PATIENTS, TRAINING_SEEDS, Refits
from cardiobench.results.score_result import (
    OLDER_RULES,
    Bounds,
    Breakdown,
    ClassScore,
    Estimate,
    Gap,
    Judgement,
    ScoreResult,
)
from cardiobench.results.verdict import LEVEL, REVERSED_LEVEL, Rank, Verdict

BEYOND = {"t": "both", "log_t": "high", "log_t_complement": "low"}
"""Mapping from interval method to the ends that may lie outside the range of the number."""
LEAVES = (float, int, str, tuple, type(None))
"""Types of values without parts."""


def check_consistency(result: ScoreResult) -> list[str]:
    """Return inconsistencies of a computed score; empty for a valid result."""
    if lacking := missing_parts(result):
        return lacking
    return [*_of_scores(result), *_of_facts(result), *([] if result.outdated else _of_present_rules(result))]


def missing_parts(result: ScoreResult) -> list[str]:
    """Return missing parts that are required to show a result."""
    parts = {
        f"{result.metric}, which ranks it": result.metric in result.overall,
        "floor": "best_uninformed" in result.floors,
        "name of a model": "name" in result.model,
        "name of a dataset": "name" in result.dataset,
    }
    return [f"it has no {name}" for name, there in parts.items() if not there]


def _of_scores(result: ScoreResult) -> Iterator[str]:
    for name, estimate in result.overall.items():
        if not _possible(estimate, find_numbers(name) or (result.number(name),)):
            yield f"{name} {estimate.value:g} [{estimate.low:g}, {estimate.high:g}] is no score"
    largest = max(estimate.n for estimate in result.overall.values())
    if largest > result.scored or (result.expected is not None and result.scored > result.expected):
        yield f"{result.scored} scored of {result.expected} expected, n = {largest}"


def _of_facts(result: ScoreResult) -> Iterator[str]:
    if result.rules > type(result).rules:
        yield f"it was scored by rules {result.rules}, and this version of cardiobench has {type(result).rules}"
    if result.rules < FIRST_RULES and result.verdict.sentence != OLDER_RULES:
        yield f"it is written as a result of rules {FIRST_RULES} and says that it was scored by rules {result.rules}"
    if (NOT_SEEN in result.warnings) != result.given_embeddings:
        yield f"'{NOT_SEEN}' is {'not ' * result.given_embeddings}among its warnings, and it was loaded by {result.model.get('loaded_by')}"
    for name, breakdown in result.groups.items():
        if not math.isnan(breakdown.gap.low) and len(breakdown.values) != 2:
            yield f"{name}: a difference of two groups, and it has {len(breakdown.values)}"
    if result.dataset.get("twin") and not result.generated:
        yield "it is of a synthetic twin, and says that its recordings were not generated"
    if told := reason_given(result.model, [result.task.partition("/")[2]], result.task):
        yield told
    known = find_numbers(result.metric)
    if known and all(number.higher_is_better != result.higher_is_better for number in known):
        yield f"higher_is_better is {result.higher_is_better} for {result.metric}"


def _of_present_rules(result: ScoreResult) -> Iterator[str]:
    """Yield inconsistencies that only apply to results under the current rules."""
    for name, part in _parts(result):
        yield from (f"{name}: {wrong}" for wrong in CHECKS[type(part)](part))
    sign = 1 if result.higher_is_better else -1
    if result.bounds is None and not math.isnan(result.floor.value):
        yield from _of_margins(result, sign)
    if math.isnan(result.floor.value) != (result.verdict.word.rank is Rank.NONE):
        yield f"{result.verdict.word} with the floor {result.floor.value:g}"
    if result.verdict.refitted and not result.out_of_fold:
        yield "its p-value is of refits, and its answers are not out of fold"
    if result.bounds is not None:
        yield from _of_bounds(result, result.bounds, sign)


def _of_margins(result: ScoreResult, sign: int) -> Iterator[str]:
    """Yield inconsistencies between verdict, score and floor."""
    score, floor, verdict = result.score, result.floor.value, result.verdict
    low, high = sorted((sign * (score.low - floor), sign * (score.high - floor)))
    if not _equal(sign * (score.value - floor), verdict.difference):
        yield f"score minus floor is {sign * (score.value - floor):.6g}, it says {verdict.difference:.6g}"
    exact = _equal(low, verdict.low) and _equal(high, verdict.high)
    if not (exact if score.method else (low > 0, high < 0) == (verdict.low > 0, verdict.high < 0)):
        yield f"the interval minus the floor is [{low:.6g}, {high:.6g}], it says [{verdict.low:.6g}, {verdict.high:.6g}]"


def _of_bounds(result: ScoreResult, bounds: Bounds, sign: int) -> Iterator[str]:
    ends = (sign * bounds.worst, sign * result.score.value, sign * bounds.best)
    if not _ordered(*ends):
        yield f"bounds from {bounds.worst:g} to {bounds.best:g} of the score {result.score.value:g}"
    unanswered = math.inf if result.expected is None else result.expected - result.scored
    if not 0 < bounds.missing <= unanswered:
        yield f"{bounds.missing} answers missing, {unanswered:g} not scored"


def _of_estimate(estimate: Estimate) -> Iterator[str]:
    if not _ordered(estimate.low, estimate.value, estimate.high) or estimate.se < 0:
        yield f"{estimate.value:g} [{estimate.low:g}, {estimate.high:g}], standard error {estimate.se:g}"
    if estimate.n_patients > estimate.n:
        yield f"{estimate.n_patients} patients in {estimate.n} rows"


def _of_judgement(verdict: Judgement) -> Iterator[str]:
    if not _ordered(verdict.low, verdict.difference, verdict.high):
        yield f"difference {verdict.difference:g} [{verdict.low:g}, {verdict.high:g}]"
    yield from _of_p_values(verdict.p_value, verdict.p_adjusted)
    if verdict.word in NEEDS and not NEEDS[verdict.word](verdict):
        yield f"{verdict.word} with an interval from {verdict.low:.6g} to {verdict.high:.6g} and p = {verdict.p_adjusted:.6g}"


def _of_gap(gap: Gap) -> Iterator[str]:
    if gap.value < 0 or not (math.isnan(gap.excess) or _equal(gap.excess, gap.value - gap.expected)):
        yield f"gap {gap.value:g}, {gap.expected:g} expected, excess {gap.excess:g}"
    if not _ordered(gap.low, gap.difference, gap.high):
        yield f"difference {gap.difference:g} [{gap.low:g}, {gap.high:g}]"
    yield from _of_p_values(gap.p_value, gap.p_adjusted)


def _of_breakdown(breakdown: Breakdown) -> Iterator[str]:
    defined = {name: one.value for name, one in breakdown.values.items() if not math.isnan(one.value)}
    if len(defined) < 2 and not math.isnan(breakdown.gap.value):
        yield f"gap {breakdown.gap.value:g} of {len(defined)} groups"
    gap = max(defined.values()) - min(defined.values()) if len(defined) > 1 else breakdown.gap.value
    if not (math.isnan(breakdown.gap.value) or _equal(breakdown.gap.value, gap)):
        yield f"gap {breakdown.gap.value:g} of scores that lie {gap:g} apart"
    extremes = [name for name, value in defined.items() if value in (max(defined.values()), min(defined.values()))]
    if defined and breakdown.worst not in extremes:
        yield f"the worst group is '{breakdown.worst}'"


def _of_class(score: ClassScore) -> Iterator[str]:
    if not (score.patients <= score.positives <= score.n and score.auroc.n == score.n):
        yield f"{score.positives} of {score.n} rows of {score.patients} patients"


def _of_p_values(p: float, adjusted: float) -> Iterator[str]:
    if not (_ordered(0, p, adjusted) and _ordered(0, adjusted, 1)):
        yield f"p = {p:g}, adjusted {adjusted:g}"


def _of_cost(cost: Cost) -> Iterator[str]:
    numbers = [cost.bytes, cost.flops, cost.text_flops]
    numbers += [number for one in cost.timings for number in (one.seconds, one.decoding)]
    if any(number < 0 or math.isinf(number) for number in numbers):
        yield f"a negative or infinite number among {', '.join(f'{number:g}' for number in numbers)}"
    if (cost.parameters is None) != math.isnan(cost.flops) or (cost.parameters is None) != bool(cost.reason):
        yield f"{cost.parameters} parameters and {cost.flops:g} operations, reason '{cost.reason}'"


def _of_refits(refits: Refits) -> Iterator[str]:
    known = (TRAINING_PATIENTS, TRAINING_SEEDS) if refits.count else (NO_TRAINING,)
    if refits.varies not in known:
        yield f"{refits.count} refits that vary by {refits.varies}"
    for key, scores in refits.scores.items():
        if len(scores) != refits.count:
            yield f"{len(scores)} scores of {key} for {refits.count} refits"


FIRST_RULES = 4
"""Version of the rules of the current schema; results of older schemas lose their verdict when loaded."""
CHECKS: Mapping[type, Callable[[Any], Iterator[str]]] = {
    Estimate: _of_estimate,
    Judgement: _of_judgement,
    Gap: _of_gap,
    Breakdown: _of_breakdown,
    ClassScore: _of_class,
    Cost: _of_cost,
    Refits: _of_refits,
}
NEEDS: Mapping[Verdict, Callable[[Judgement], bool]] = {
    Verdict.ABOVE: lambda verdict: verdict.low > 0 and verdict.p_adjusted < LEVEL,
    Verdict.INFORMED: lambda verdict: not verdict.low > 0 and verdict.p_adjusted < LEVEL,
    Verdict.NOTHING: lambda verdict: not verdict.p_adjusted < LEVEL,
    Verdict.REVERSED: lambda verdict: verdict.high < 0 and verdict.p_reversed < REVERSED_LEVEL,
}
"""Mapping from verdict to conditions on interval and p-value."""


def _parts(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the name and value of every part that has a check."""
    kind: type = type(value)
    if kind in CHECKS:
        yield name.strip(), value
    inner: Mapping[str, Any] = {key: getattr(value, key) for key in _field_names(kind)}
    if not inner and isinstance(value, Mapping):
        inner = value
    for key, entry in inner.items():
        if not isinstance(entry, LEAVES):  # Most values are numbers.
            yield from _parts(entry, f"{name} {key}")


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def _ordered(low: float, value: float, high: float) -> bool:
    """Return whether numbers are ascending, ignoring NaN."""
    known = [number for number in (low, value, high) if not math.isnan(number)]
    return all(one <= other or _equal(one, other) for one, other in pairwise(known))


def _equal(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE) or (math.isnan(one) and math.isnan(other))


def _possible(estimate: Estimate, numbers: Sequence[Number]) -> bool:
    """Return whether an estimate is plausible for a number, considering all numbers with the same key."""
    beyond = "" if estimate.covers == Estimate.covers else "both"
    beyond = beyond or BEYOND.get(estimate.method, "")
    values = [estimate.value]
    values += [estimate.low] if beyond not in ("low", "both") else []
    values += [estimate.high] if beyond not in ("high", "both") else []
    inside = any(all(number.possible(value) for value in values) for number in numbers)
    return inside and not estimate.low > estimate.high and estimate.n_patients <= estimate.n
