"""Compute the cells of a run: the one way from a cell to its record in the summary."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from cardiobench.core.errors import CardioBenchError, NotApplicable
from cardiobench.results.record import reason_given
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.backends import backend
from cardiobench.runner.cells.base import ComputedCell, Result
from cardiobench.runner.context import RunContext
from cardiobench.runner.recent import RecentData
from cardiobench.runner.workers import (
    CellOutcome,
    compute_in_workers,
    detached,
    grouped,
    jobs_by_memory,
    n_jobs,
    on_one_core,
    stored_bytes,
    workers_pay,
)
from cardiobench.tasks.task import lacks_metrics, unscorable


class Progress(Protocol):
    """Announcements of cells that are long enough to be sent to workers in every run."""

    def order(self, todo: Sequence[int]) -> list[int]:
        """Return positions in the order in which the cells are computed."""
        ...

    def begin(self, todo: Sequence[int], slots: int) -> None:
        """Announce the cells to compute, `slots` at a time."""
        ...

    def finish(self, position: int, record: Any) -> None:
        """Note a finished cell; the record is None if the protocol does not apply."""
        ...


def applies(cell: ComputedCell[Any]) -> str:
    """Return why a cell does not apply, as far as known before anything is read; empty if it does.

    A task or protocol does not apply without its metrics, and a model not to a target that it receives as input. A protocol may refuse
    the task or the model.
    """
    of_protocol = lacks_metrics(cell.protocol.name, cell.protocol.formulas)
    if lacking := next(filter(None, (*map(unscorable, cell.tasks), of_protocol)), ""):
        return lacking
    model = {"name": cell.model.name, "given": cell.model.given}
    if told := reason_given(model, [task.target for task in cell.tasks], cell.subject):
        return told
    try:
        cell.check()
    except NotApplicable as error:
        return str(error)
    return ""


def compute_all(
    cells: Sequence[ComputedCell[Result]],
    context: RunContext,
    name: str,
    *,
    together: Callable[[Any], Hashable] = id,
    progress: Progress | None = None,
) -> list[Result | None]:
    """Return the saved records of cells if current, else compute them, and add all to the summary in order.

    Cells are computed in workers if they can be sent there and if this saves time, else here. Finished cells are kept, so
    an interrupted run continues with the missing ones.

    Args:
        cells: Cells of one model.
        context: Run context of the main process.
        name: Name for the progress bar.
        together: Function from cell to key; with enough groups, one worker computes all cells of a group.
        progress: Announcements of long cells of one protocol on one dataset; None for short cells.

    Returns:
        Record of each cell; None if it does not apply (the summary has the reason).

    Raises:
        CardioBenchError: A cell failed; the records of the cells before it are in the summary.
    """
    refused = [applies(cell) for cell in cells]
    kept = (
        {}
        if context.config.overwrite
        else {n: record for n, cell in enumerate(cells) if not refused[n] and (record := cell.load_cached())}
    )
    todo = [n for n in range(len(cells)) if not refused[n] and n not in kept]
    if progress:
        todo = progress.order(todo)
    outcomes = _in_workers(cells, todo, context, name, together, progress)
    recent = RecentData()
    return [_settle(n, cell, refused[n], kept.get(n), outcomes.get(n), recent, context) for n, cell in enumerate(cells)]


def _settle(
    n: int,
    cell: ComputedCell[Result],
    refused: str,
    kept: Result | None,
    outcome: CellOutcome | None,
    recent: RecentData,
    context: RunContext,
) -> Result | None:
    """Add a cell to the summary: its kept record, what a worker returned, or a record computed now."""
    record: Result | None = kept.in_suite(context.config.suite, cell.path) if kept and not refused else None
    files: Sequence[Path] = ()
    if outcome:
        if outcome.error:
            raise outcome.error
        refused, record, files = outcome.reason, outcome.record, outcome.files
    elif not refused and kept is None:
        try:
            record, files = on_one_core(detached(cell), recent) if cell.sendable else cell.compute(recent)
        except NotApplicable as error:
            refused = str(error)
    if refused or record is None:
        context.summary.not_applicable.append((cell.model.name, cell.subject, cell.label, refused))
        return None
    context.summary.add(record, files, earlier=kept is not None)
    return record


def _in_workers(
    cells: Sequence[ComputedCell[Any]],
    todo: Sequence[int],
    context: RunContext,
    name: str,
    together: Callable[[Any], Hashable],
    progress: Progress | None,
) -> dict[int, CellOutcome]:
    """Return outcomes by position, complete up to the first failure; empty if this process alone is as fast."""
    config = context.config
    apart = [n for n in todo if cells[n].sendable and not cells[n].trained_here]
    sizes = {n: stored_bytes(cells[n]) for n in apart}
    jobs = min(n_jobs(config), jobs_by_memory(max(sizes.values(), default=0)))
    if not progress:
        chosen = config.jobs is not None or config.backend != "loky"
        alone = min(jobs, len(apart)) < 2 and config.backend == "loky"
        if alone or not (chosen or workers_pay(list(sizes.values()), jobs)):
            return {}
        apart.sort(key=expected_cost(cells, sizes, context.summary.results), reverse=True)
    if progress and not apart:
        progress.begin(apart, jobs)
    sent = _detached_cells(cells, apart)
    if not sent:
        return {}
    groups = grouped(list(sent), [together(cells[n]) for n in sent], jobs)
    outcomes: dict[int, CellOutcome] = {}
    failed = len(cells)
    with backend(config.backend, jobs, len(groups)) as workers:
        if progress:
            progress.begin(list(sent), workers.count)
        with context.console.progress(name, len(sent), doing="evaluating") as advance:
            messages = [[(n, sent[n]) for n in group] for group in groups]
            for outcome in compute_in_workers(messages, workers):
                outcomes[outcome.index] = outcome
                if outcome.error:
                    failed = min(failed, outcome.index)
                elif progress:
                    progress.finish(outcome.index, outcome.record)
                advance(1)
                if all(earlier in outcomes for earlier in sent if earlier <= failed):
                    break  # Do not start cells after a failure, as in a serial run.
    return outcomes


def _detached_cells(cells: Sequence[ComputedCell[Any]], positions: Sequence[int]) -> dict[int, ComputedCell[Any]]:
    """Return detached cells by position; cells whose texts cannot be encoded stay here, where the reason is reported."""
    found = {}
    for n in positions:
        try:
            found[n] = detached(cells[n])
        except CardioBenchError:
            continue
    return found


def expected_cost(
    cells: Sequence[ComputedCell[Any]], sizes: Mapping[int, int], results: Sequence[ScoreResult]
) -> Callable[[int], tuple[int, float]]:
    """Return the key by which cells are sorted, because a long cell at the end would occupy a single process.

    Args:
        cells: Cells of one model.
        sizes: Size of embeddings in bytes by position.
        results: Results of other models, whose times order the protocols and tasks of a dataset.
    """
    seconds = {(result.protocol, result.task): float(result.stamp.get("seconds", 0)) for result in results}

    def cost(n: int) -> tuple[int, float]:
        known = [seconds.get((cells[n].protocol.name, task.name), 0.0) for task in cells[n].tasks]
        return sizes[n], max(known, default=0.0)

    return cost
