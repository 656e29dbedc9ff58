"""Plan the cells of labelled frames."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from cardiobench.data.dataset import OpenDataset
from cardiobench.data.spec import Task
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.base import BaseProtocol
from cardiobench.runner.cells.frames import FrameCell
from cardiobench.runner.context import RunContext
from cardiobench.runner.hooks import RunHooks

if TYPE_CHECKING:
    from cardiobench.extensions.dense.protocol import DensePrediction

NAME = "dense"
"""Name of the protocol."""


class DenseHooks(RunHooks):
    """Cells of segmentation and landmarks."""

    def plan(
        self,
        model: LoadedModel,
        tasks: Sequence[Task],
        datasets: Mapping[str, OpenDataset],
        protocols: Sequence[BaseProtocol],
        context: RunContext,
    ) -> Iterator[FrameCell]:
        """Yield one cell per read-out of a model; embeddings from elsewhere have no tokens of frames."""
        chosen = [one for one in protocols if one.name == NAME]
        if chosen and model.vectors:
            asked = [task.name for task in tasks if task.dense and task.dataset in datasets]
            context.summary.not_applicable += [(model.name, name, NAME, model.vectors.no_encoder) for name in asked]
        elif chosen:
            from cardiobench.extensions.dense.plan import plan_read_outs  # It imports PyTorch.

            yield from plan_read_outs(model, tasks, datasets, cast("Sequence[DensePrediction]", chosen), context)
