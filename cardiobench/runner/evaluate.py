"""Evaluate the cells of protocols that predict from embeddings; all processes train ensemble members."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import groupby
from typing import Any

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.core.workers import prepared
from cardiobench.models.base import LoadedModel
from cardiobench.protocols import choose, protocol_class
from cardiobench.protocols.base import PredictionProtocol
from cardiobench.protocols.ensemble import EnsembleProtocol
from cardiobench.runner.cells.recordings import Cell, Members
from cardiobench.runner.compute import applies, compute_all
from cardiobench.runner.context import RunContext
from cardiobench.runner.eta import RemainingTime
from cardiobench.runner.plan import AbsentPlan, DatasetPlan
from cardiobench.runner.processes import share
from cardiobench.runner.recent import RecentData
from cardiobench.runner.workers import jobs_by_memory, launched_here
from cardiobench.scoring.suites import load_suite


def make_cells(
    model: LoadedModel,
    plan: DatasetPlan | AbsentPlan,
    protocols: Iterable[PredictionProtocol],
    unreadable: frozenset[str],
    context: RunContext,
) -> list[Cell]:
    """Return the cells of one model on one dataset."""
    return [
        Cell(model, protocol, context.config, task.name, (task,), plan, variant, unreadable)
        for task in plan.tasks
        for protocol in protocols
        for variant in protocol.variants(task)
    ]


def evaluate_cells(cells: Sequence[Cell], context: RunContext) -> None:
    """Evaluate all cells of one model, in parallel if stored embeddings suffice.

    All processes train ensemble members; the main process does the rest while the others wait.

    Args:
        cells: Cells of one model, equal on all processes.
        context: Run context.
    """
    if not cells:
        return
    trained = train_members(cells, context)
    if context.accelerator.is_main_process:
        _evaluate_here(trained, context)
    context.accelerator.wait_for_everyone()


def _evaluate_here(cells: Sequence[Cell], context: RunContext) -> None:
    long: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        if cell.protocol.runs_in_parallel:
            long.setdefault((cell.dataset.spec.name, cell.protocol.name), []).append(cell)
    short = [cell for cell in cells if not cell.protocol.runs_in_parallel]
    datasets = list(dict.fromkeys(cell.dataset.spec.name for cell in cells))
    name = f"{datasets[0] if len(datasets) == 1 else f'{len(datasets)} datasets'} with {cells[0].model.name}"
    compute_all(short, context, name, together=_task_name)
    for (dataset, _), group in long.items():
        name = f"{dataset} with {group[0].model.name}"
        compute_all(group, context, name, progress=RemainingTime(group, context))


def _task_name(cell: Cell) -> str:
    """Return the task name, which groups cells that read the same recordings."""
    return cell.task.name


def workers_from_start(config: RunConfig) -> AbstractContextManager[None]:
    """Return a context in which the workers of `--jobs`, at most one per core, import their libraries.

    A run that has results already may need no workers, so none are started for it.
    """
    import joblib

    known = any(config.output_dir.glob("*/*/*/*.json"))
    asked = config.jobs if config.backend == "loky" and launched_here() == 1 and not known else None
    return prepared(min(asked or 1, jobs_by_memory(0), joblib.cpu_count()), import_libraries, config)


def import_libraries(config: RunConfig) -> None:
    """Import the modules that evaluate the cells of a run."""
    for name in choose(load_suite(config.suite).protocols if config.suite else config.protocols):
        protocol_class(name)


def train_members(cells: Sequence[Cell], context: RunContext) -> Sequence[Cell]:
    """Train the ensemble members of all uncached cells, distributed over the processes.

    Args:
        cells: Cells of one model and dataset, equal on all processes.
        context: Run context.

    Returns:
        The cells with their members, equal on all processes; unchanged with a single process, which trains the members
        when it computes a cell.
    """
    accelerator = context.accelerator
    if accelerator.num_processes == 1:
        return cells
    from accelerate.utils import gather_object

    ensembles = {n: one.protocol.members for n, one in enumerate(cells) if isinstance(one.protocol, EnsembleProtocol)}
    # Check the cache on one process, because others may see newer files.
    [todo] = share([[n for n in ensembles if context.config.overwrite or not cells[n].load_cached()]])
    jobs = [(n, member) for n in todo for member in range(ensembles[n])]
    mine = jobs[accelerator.process_index :: accelerator.num_processes]
    with context.console.progress("members", len(mine), doing="training") as advance:
        done = []
        for n, group in groupby(mine, key=lambda job: job[0]):
            started = time.perf_counter()
            for member, answer in _train(cells[n], [member for _, member in group]):
                done.append((n, member, answer, -started + (started := time.perf_counter())))
                advance(1)
    by_cell: dict[int, dict[int, tuple[Any, float]]] = {n: {} for n in todo}
    for n, member, answer, seconds in gather_object(done):
        by_cell[n][member] = answer, seconds
    trained = {n: _in_order(members) for n, members in by_cell.items()}
    return [replace(cell, members=trained.get(n)) for n, cell in enumerate(cells)]


def _in_order(members: Mapping[int, tuple[Any, float]]) -> Members:
    answers, seconds = zip(*(members[number] for number in sorted(members)), strict=True)
    return Members(answers, sum(seconds))


def _train(cell: Cell, members: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """Yield the prediction of each member, or the reason why it has none."""
    protocol = cell.protocol
    assert isinstance(protocol, EnsembleProtocol)
    try:
        if told := applies(cell):
            raise NotApplicable(told)
        prepared = protocol.prepare(cell.read(RecentData()), cell.model.encoder, cell.variant)
    except NotApplicable as error:
        yield from ((member, error) for member in members)
        return
    for member in members:
        try:
            yield member, protocol.train(prepared, member)
        except NotApplicable as error:
            yield member, error
