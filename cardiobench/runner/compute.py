"""Load the current record of a cell, or compute it."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from cardiobench.core.errors import NotApplicable
from cardiobench.protocols.base import PredictionProtocol
from cardiobench.results.record import reason_given
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
    try:
        check_applies(cell)
        cached = None if context.config.overwrite else cell.load_cached()
        record, files = (cached, ()) if cached else compute(cell)
    except NotApplicable as error:
        not_applicable(cell, str(error), context)
        return None
    context.summary.add(record, files, earlier=cached is not None)
    return record


def check_applies(cell: BaseCell[Any]) -> None:
    """Reject a cell whose protocol does not apply to its task or its model, before anything is read.

    Every path to a record goes through this check, in this process and in workers.

    Raises:
        NotApplicable: The model receives the target as input, or the protocol rejects the task or the model.
    """
    model = {"name": cell.model.name, "given": cell.model.given}
    if told := reason_given(model, [task.target for task in cell.tasks], cell.subject):
        raise NotApplicable(told)
    if isinstance(cell.protocol, PredictionProtocol):
        for task in cell.tasks:
            cell.protocol.check(task)
            cell.protocol.check_encoder(cell.model.encoder, task)


def not_applicable(cell: BaseCell[Any], reason: str, context: RunContext) -> None:
    """Add an inapplicable combination to the summary."""
    context.summary.not_applicable.append((cell.model.name, cell.subject, cell.label, reason))
