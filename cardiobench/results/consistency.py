"""What cannot be true of a score that was computed: how a result that was edited by hand is told."""

import math
from collections.abc import Mapping
from typing import Any

from cardiobench.results.formatting import FRACTIONS
from cardiobench.results.score_result import Estimate, ScoreResult

TOLERANCE = 1e-9
VERDICTS = ("yes", "no", "tied", "unknown")


def check_consistency(result: ScoreResult) -> list[str]:
    """What cannot be true of a score that was computed; empty for a result as it should be."""
    if odd := _of_wrong_type(result):
        return [f"{', '.join(odd)}: not of the type that is written"]
    if result.metric not in result.overall or "best_constant" not in result.floors:
        return [f"it has no {result.metric} or no best constant"]
    wrong = [
        f"{name} {estimate.value:g} [{estimate.low:g}, {estimate.high:g}] is no score"
        for name, estimate in result.overall.items()
        if not _possible(name, estimate)
    ]
    scored, expected = result.coverage["scored"], result.coverage["expected"]
    if not 0 <= scored <= expected or result.score.n > expected:
        wrong.append(f"{scored} scored of {expected} expected, n = {result.score.n}")
    if result.beats_floor.verdict not in VERDICTS:
        wrong.append(f"verdict {result.beats_floor.verdict!r}")
    sign = 1 if result.higher_is_better else -1
    margin = sign * (result.score.value - result.floors["best_constant"].value)
    if not math.isclose(margin, result.beats_floor.difference, abs_tol=TOLERANCE) and not math.isnan(margin):
        wrong.append(f"score minus floor is {margin:.6g}, it says {result.beats_floor.difference:.6g}")
    return wrong


def _of_wrong_type(result: ScoreResult) -> list[str]:
    """Fields whose values are not what a run writes, so that nothing later stumbles over them."""
    trees = ("options", "dataset", "model", "stamp", "coverage", "overall", "floors", "groups", "skipped_groups")
    if odd := [name for name in trees if not isinstance(getattr(result, name), Mapping)]:
        return odd
    estimates = [*result.overall.values(), *(e for group in result.groups.values() for e in group.values.values())]
    gaps = [group.gap for group in result.groups.values()]
    checks = {
        "a name": all(
            isinstance(text, str) and text
            for text in (result.task, result.metric, result.protocol, result.model.get("name"))
        ),
        "a text": all(isinstance(text, str) for text in (result.unit, result.variant, *result.warnings)),
        "a flag": all(isinstance(flag, bool) for flag in (result.collapsed, result.higher_is_better))
        and result.seen_in_pretraining in (True, False, None),
        "a number": all(
            _number(value)
            for kept in (*estimates, *gaps, result.beats_floor)
            for value in (getattr(kept, "value", 0.0), kept.low, kept.high, getattr(kept, "difference", 0.0))
        )
        and all(_number(floor.value) for floor in result.floors.values()),
        "a count": all(_count(n) for e in estimates for n in (e.n, e.n_patients))
        and all(_count(result.coverage.get(name)) for name in ("scored", "expected")),
        "a reason": all(isinstance(kept.reason, str) for kept in (*estimates, *gaps, *result.floors.values())),
        "an answer": all(isinstance(f.prediction, (str, int, float, type(None))) for f in result.floors.values()),
        "a group": all(isinstance(group.worst, (str, type(None))) for group in result.groups.values()),
    }
    return [name for name, fine in checks.items() if not fine]


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _possible(metric: str, estimate: Estimate) -> bool:
    top = 1 + TOLERANCE if metric in FRACTIONS else math.inf
    bottom = -TOLERANCE if metric in FRACTIONS or metric == "mae" else -math.inf
    inside = all(math.isnan(v) or bottom <= v <= top for v in (estimate.value, estimate.low, estimate.high))
    return inside and not estimate.low > estimate.high and 0 <= estimate.n_patients <= estimate.n
