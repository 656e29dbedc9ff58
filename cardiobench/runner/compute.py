"""Load the current record of a cell, or compute it."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from cardiobench.core.errors import NotApplicable
from cardiobench.runner.cell import BaseCell, Result
from cardiobench.runner.context import RunContext


def load_or_compute(
    cell: BaseCell[Result], compute: Callable[[Any], tuple[Result, Iterable[Path]]], context: RunContext
) -> Result | None:
    """Return the saved record of a cell if current, else compute it, and add it to the summary.

    Args:
        cell: Cell of the record.
        compute: Function that computes and saves the record and returns it with its files.
        context: Run context.

    Returns:
        Record of the cell; None if the protocol does not apply (the summary has the reason).
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
    """Return the targets of a cell that the model receives as input, such as age for the metadata baseline."""
    return {task.target for task in cell.tasks} & set(getattr(cell.model.encoder, "given", ()))


def check_not_given(cell: BaseCell[Any]) -> None:
    """Reject a task whose target the model receives as input."""
    if told := given(cell):
        raise NotApplicable(f"{cell.model.name} receives the {', '.join(sorted(told))} that {cell.subject} is about")


def not_applicable(cell: BaseCell[Any], reason: str, context: RunContext) -> None:
    """Add an inapplicable combination to the summary."""
    context.summary.not_applicable.append((cell.model.name, cell.subject, cell.label, reason))
