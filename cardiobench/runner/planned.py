"""Cells that read other vectors than those of whole recordings, such as tokens of labelled frames."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cardiobench.core import extensions
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.spec import Task
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.base import BaseProtocol
from cardiobench.runner.cell import FrameCell, load_or_compute
from cardiobench.runner.context import RunContext
from cardiobench.runner.encode import EncodeInput, encode_inputs
from cardiobench.runner.evaluate import evaluate_cell


class FrameInput(Protocol):
    """Frames that a model encodes for a cell."""

    @property
    def store(self) -> EmbeddingStore:
        """The store of their vectors."""
        ...

    def encode_input(self) -> EncodeInput:
        """Return the frames that the store lacks now."""
        ...


@dataclass(frozen=True)
class PlannedCell:
    """A cell of labelled frames before they are encoded.

    Attributes:
        task: Task of the cell.
        inputs: Name -> frames that have to be encoded.
        make: Function that makes the cell, given for each input the ids of the frames that could not be encoded.
    """

    task: Task
    inputs: Mapping[str, FrameInput]
    make: Callable[[Mapping[str, frozenset[str]]], FrameCell]


def planned_cells(
    model: LoadedModel,
    tasks: Sequence[Task],
    datasets: Mapping[str, OpenDataset],
    protocols: Sequence[BaseProtocol],
    context: RunContext,
) -> Iterator[PlannedCell]:
    """Yield the cells of the protocols whose extension plans them.

    Args:
        model: Loaded model.
        tasks: All tasks of the run.
        datasets: Name -> dataset whose data is here.
        protocols: Protocols of the run.
        context: Run context; its summary gets what does not apply.
    """
    for name, reference in extensions.contributions("plans").items():
        if chosen := [protocol for protocol in protocols if protocol.name == name]:
            yield from extensions.resolve(reference)(model, tasks, datasets, chosen, context)


def run_planned(
    model: LoadedModel,
    tasks: Sequence[Task],
    datasets: Mapping[str, OpenDataset],
    protocols: Sequence[BaseProtocol],
    context: RunContext,
) -> None:
    """Encode the frames that planned cells lack, then evaluate them; the arguments are those of `planned_cells`."""
    unreadable: dict[tuple[str, Path], frozenset[str]] = {}  # Frames that failed are tried once.
    for planned in planned_cells(model, tasks, datasets, protocols, context):
        places = {name: (planned.task.name, one.store.folder) for name, one in planned.inputs.items()}
        for name, place in places.items():
            if place not in unreadable:
                wanted = planned.inputs[name].encode_input()
                unreadable[place] = encode_inputs([wanted], planned.task.dataset, context, note=", single frames")
        if context.accelerator.is_main_process:
            cell = planned.make({name: unreadable[place] for name, place in places.items()})
            load_or_compute(cell, evaluate_cell, context)
        context.accelerator.wait_for_everyone()
