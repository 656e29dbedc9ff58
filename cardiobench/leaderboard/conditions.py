"""Tell conditions that can be compared with a submitted result from those that its owner only declares."""

from functools import lru_cache
from types import ModuleType
from typing import Any

from cardiobench.core import extensions
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
    return (*found, *(label for label in _labels(result) if not _applies(result, label)))


def contradictions(result: ScoreResult) -> list[str]:
    """Return statements of a result that contradict its condition of the input; empty if they agree.

    A condition of the input is part of the variant, and the preprocessing states what it changed.
    """
    labels = _labels(result)
    problems = []
    for label in labels:
        if not _applies(result, label):
            continue
        name, _, value = label.partition("=")
        if label not in result.variant.split("."):
            problems.append(f"its condition is {label}, but its variant is {result.variant!r}")
        stated: dict[str, Any] = dict(result.model.get("preprocessing") or {})
        if (module := _module(name)) is not None and not module.states(stated, value):
            problems.append(f"its condition is {label}, but its preprocessing does not state what this changes")
    for label in result.variant.split("."):
        if label not in labels and _applies(result, label):
            problems.append(f"its variant is {result.variant!r}, but its condition is {result.input_condition!r}")
    return problems


def _labels(result: ScoreResult) -> list[str]:
    return list(filter(None, result.input_condition.split(".")))


def _applies(result: ScoreResult, label: str) -> bool:
    """Return whether an installed extension defines a condition of the input that can be compared and applies to the task."""
    name, _, value = label.partition("=")
    module, task = _module(name), find_task(result.task)
    return module is not None and task is not None and bool(module.applies(task, value))


@lru_cache(maxsize=256)
def _module(name: str) -> ModuleType | None:
    """Return the module of a condition of the input that can be compared; None for any other name."""
    known = extensions.contributions("conditions")
    module = extensions.resolve(known[name]) if name in known else None
    return module if hasattr(module, "model") and hasattr(module, "states") else None


@lru_cache(maxsize=256)
def _is_known(protocol: str) -> bool:
    try:
        protocol_class(protocol)
    except UnknownName:
        return False
    return True
