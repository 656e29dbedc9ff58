"""Tell conditions that can be compared with a submitted result from those that its owner only declares."""

from functools import lru_cache
from typing import Any

from cardiobench.core.conditions import Condition, installed_condition, split_parts
from cardiobench.core.errors import UnknownName
from cardiobench.protocols import protocol_class
from cardiobench.report.overview import find_task
from cardiobench.results.collect import ResultEntry
from cardiobench.results.score_result import ScoreResult

DECLARED = "declared"


def is_declared(entry: ResultEntry) -> bool:
    """Return whether the condition of a submitted result is only declared by its owner; such results have no place."""
    return bool(entry.pushed_by) and bool(declared_conditions(entry.result) or contradictions(entry.result))


def declared_conditions(result: ScoreResult) -> tuple[str, ...]:
    """Return the parts of a result's condition that nothing here can be compared with.

    These are protocols that are not installed here, conditions of the input that no installed extension defines, and how a
    model behind predictions from elsewhere was trained.
    """
    found = [] if result.external or _is_known(result.protocol) else [f"protocol {result.protocol}"]
    if result.external and result.variant:
        found.append(result.variant)
    return (*found, *(label for label in _labels(result) if not _comparable(result, label)))


def contradictions(result: ScoreResult) -> list[str]:
    """Return statements of a result that contradict its condition of the input; empty if they agree.

    A condition of the input is part of the variant, and the preprocessing states what it changed.
    """
    labels, variant = _labels(result), split_parts(result.variant)
    problems = []
    for label in labels:
        if not (found := _comparable(result, label)):
            continue
        if label not in variant:
            problems.append(f"its condition is {label}, but its variant is {result.variant!r}")
        stated: dict[str, Any] = dict(result.model.get("preprocessing") or {})
        if not found.module.states(stated, found.value):
            problems.append(f"its condition is {label}, but its preprocessing does not state what this changes")
    for label in variant:
        if label not in labels and _comparable(result, label):
            problems.append(f"its variant is {result.variant!r}, but its condition is {result.input_condition!r}")
    return problems


def _labels(result: ScoreResult) -> list[str]:
    return list(filter(None, split_parts(result.input_condition)))


def _comparable(result: ScoreResult, label: str) -> Condition | None:
    """Return a condition of the input that an installed extension can compare and that applies to the task; None for any other."""
    found, task = installed_condition(label), find_task(result.task)
    if not found or not task or not found.of_input or not hasattr(found.module, "states"):
        return None
    return found if found.module.applies(task, found.value) else None


@lru_cache(maxsize=256)
def _is_known(protocol: str) -> bool:
    try:
        protocol_class(protocol)
    except UnknownName:
        return False
    return True
