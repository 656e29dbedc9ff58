"""Plan cells with inputs other than whole recordings, such as tokens of labelled frames."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cardiobench.core import extensions
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.spec import Task
from cardiobench.embeddings.elsewhere import NO_ENCODER, GivenEmbeddings
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.base import BaseProtocol
from cardiobench.runner.cell import FrameCell
from cardiobench.runner.compute import load_or_compute
from cardiobench.runner.context import RunContext
from cardiobench.runner.encode import encode_inputs
from cardiobench.runner.evaluate import evaluate_cell


def planned_cells(
    model: LoadedModel,
    tasks: Sequence[Task],
    datasets: Mapping[str, OpenDataset],
    protocols: Sequence[BaseProtocol],
    context: RunContext,
) -> Iterator[FrameCell]:
    """Yield cells of protocols with a planning extension, before encoding their frames.

    Args:
        model: Loaded model.
        tasks: All tasks of the run.
        datasets: Mapping from name to available dataset.
        protocols: Protocols of the run.
        context: Run context, whose summary receives inapplicable combinations.
    """
    for name, reference in extensions.contributions("plans").items():
        # External embeddings have no frame tokens and no network to compute them.
        if isinstance(model.encoder, GivenEmbeddings):
            dense = [task.name for task in tasks if task.dense and task.dataset in datasets]
            asked = [task for task in dense if any(protocol.name == name for protocol in protocols)]
            context.summary.not_applicable += [(model.name, task, name, NO_ENCODER) for task in asked]
        elif chosen := [protocol for protocol in protocols if protocol.name == name]:
            yield from extensions.resolve(reference)(model, tasks, datasets, chosen, context)


def run_planned(
    model: LoadedModel,
    tasks: Sequence[Task],
    datasets: Mapping[str, OpenDataset],
    protocols: Sequence[BaseProtocol],
    context: RunContext,
) -> None:
    """Encode missing frames of planned cells and evaluate the cells; see `planned_cells` for arguments."""
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
            load_or_compute(replace(cell, plan=cell.plan.without(lost)), evaluate_cell, context)
        context.accelerator.wait_for_everyone()
