"""Plan cells with inputs other than whole recordings, such as tokens of labelled frames."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cardiobench.data.dataset import OpenDataset
from cardiobench.data.spec import Task
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.base import BaseProtocol
from cardiobench.runner.cells.frames import FrameCell
from cardiobench.runner.compute import compute_all
from cardiobench.runner.context import RunContext
from cardiobench.runner.encode import encode_inputs
from cardiobench.runner.hooks import run_hooks


def planned_cells(
    model: LoadedModel,
    tasks: Sequence[Task],
    datasets: Mapping[str, OpenDataset],
    protocols: Sequence[BaseProtocol],
    context: RunContext,
) -> Iterator[FrameCell]:
    """Yield the cells that extensions plan, before encoding their frames (`RunHooks.plan`)."""
    for hooks in run_hooks():
        yield from hooks.plan(model, tasks, datasets, protocols, context)


def run_planned(
    model: LoadedModel,
    tasks: Sequence[Task],
    datasets: Mapping[str, OpenDataset],
    protocols: Sequence[BaseProtocol],
    context: RunContext,
) -> None:
    """Encode missing frames of the cells that extensions plan, and compute the cells.

    Args:
        model: Loaded model.
        tasks: All tasks of the run.
        datasets: Mapping from name to available dataset.
        protocols: Protocols of the run.
        context: Run context.
    """
    unreadable: dict[tuple[str, Path], frozenset[str]] = {}  # Try failed frames only once.
    for cell in planned_cells(model, tasks, datasets, protocols, context):
        lost = {}
        for name, one in cell.plan.plans.items():
            place = cell.subject, one.store.folder
            if place not in unreadable:
                wanted = one.encode_input()
                unreadable[place] = encode_inputs([wanted], cell.task.dataset, context, note=", single frames")
            lost[name] = unreadable[place]
        if context.accelerator.is_main_process:
            compute_all([replace(cell, plan=cell.plan.without(lost))], context, cell.subject)
        context.accelerator.wait_for_everyone()
