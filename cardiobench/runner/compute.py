"""The record of a cell: taken from an earlier run if it is current, else computed, or not applicable."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from cardiobench.core.errors import NotApplicable
from cardiobench.runner.cell import BaseCell, Result
from cardiobench.runner.context import RunContext


def load_or_compute(
    cell: BaseCell[Result], compute: Callable[[Any], tuple[Result, Iterable[Path]]], context: RunContext
) -> Result | None:
    """Return the saved record of a cell if it is current, else compute it; the summary gets it either way.

    Args:
        cell: Cell of the record.
        compute: Makes and saves the record; returns it with its files.
        context: Run context.

    Returns:
        The record; None, with the reason in the summary, where the protocol does not apply.
    """
    cached = None if context.config.overwrite else cell.load_cached()
    try:
        check_not_given(cell)
        record, files = (cached, ()) if cached else compute(cell)
    except NotApplicable as error:
        not_applicable(cell, str(error), context)
        return None
    context.summary.add(record, files, earlier=cached is not None)
    return record


def given(cell: BaseCell[Any]) -> set[str]:
    """Return the targets of a cell that the model is told beside the recording, as the metadata baseline is told the age."""
    return {task.target for task in cell.tasks} & set(getattr(cell.model.encoder, "given", ()))


def check_not_given(cell: BaseCell[Any]) -> None:
    """Refuse a task whose answer the model is told."""
    if told := given(cell):
        raise NotApplicable(f"{cell.model.name} reads the {', '.join(sorted(told))} that {cell.subject} asks for")


def not_applicable(cell: BaseCell[Any], reason: str, context: RunContext) -> None:
    """Note that a protocol does not apply."""
    context.summary.not_applicable.append((cell.model.name, cell.subject, cell.label, reason))
