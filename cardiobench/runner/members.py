"""Train ensemble members on all processes of a run, each on one process."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from cardiobench.core.errors import NotApplicable
from cardiobench.protocols.ensemble import EnsembleProtocol
from cardiobench.runner.cells.recordings import Cell, Members
from cardiobench.runner.compute import applies
from cardiobench.runner.context import RunContext
from cardiobench.runner.processes import share
from cardiobench.runner.recent import RecentData


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
