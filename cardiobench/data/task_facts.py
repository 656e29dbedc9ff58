"""Facts of a task that can change a score, for the keys of results."""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from cardiobench.data.spec import Task

WORDS = ("description", "expected")
"""Fields of a task that do not affect scores: its description, and counts of the complete release."""


def task_facts(task: Task) -> dict[str, Any]:
    """Return the fields of a task that differ from their defaults, so that new fields do not affect old tasks."""
    return {name: value for name, value in _facts(task).items() if name not in WORDS}


def _facts(record: Any) -> Any:
    if is_dataclass(record):
        return {
            field.name: _facts(value)
            for field in fields(record)
            if (value := getattr(record, field.name)) != _default(field)
        }
    if isinstance(record, Mapping):
        return {str(key): _facts(value) for key, value in record.items()}
    if isinstance(record, tuple | list):
        return [_facts(value) for value in record]
    return record


def _default(field: Any) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default
