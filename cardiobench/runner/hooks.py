"""Hooks of a run, by which extensions take part in it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from cardiobench.core import extensions
from cardiobench.core.config import RunConfig
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.spec import Task
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.base import BaseProtocol
from cardiobench.results.printing import PrintedTable
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.cells.frames import FrameCell
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.context import RunContext


class RunHooks:
    """What an extension does in a run. Subclasses override what they need; the defaults do nothing."""

    def check(self, config: RunConfig) -> None:
        """Refuse settings before any work by raising a `CardioBenchError`."""

    def known_results(self, cells: Sequence[Cell], context: RunContext) -> Mapping[str, Callable[[], None]]:
        """Return functions by key of a cell, which save an existing result in place, or save nothing and print why.

        It is called with `--reuse`, for the cells of a model, before anything is encoded.
        """
        return {}

    def plan(
        self,
        model: LoadedModel,
        tasks: Sequence[Task],
        datasets: Mapping[str, OpenDataset],
        protocols: Sequence[BaseProtocol],
        context: RunContext,
    ) -> Iterator[FrameCell]:
        """Yield cells that read vectors other than those of whole recordings.

        Args:
            model: Loaded model.
            tasks: All tasks of the run.
            datasets: Mapping from name to available dataset.
            protocols: Protocols of the run.
            context: Run context, whose summary receives combinations that do not apply.
        """
        yield from ()

    def announce(self, tasks: Sequence[Task], datasets: Mapping[str, OpenDataset], config: RunConfig) -> Iterator[str]:
        """Yield lines about results that `after_model` will add, which a run prints before it starts.

        Args:
            tasks: All tasks of the run.
            datasets: Mapping from name to available dataset with a modality of a model.
            config: Settings of the run.
        """
        yield from ()

    def after_model(self, cells: Iterable[Cell], context: RunContext) -> None:
        """Add derived results to the summary, on the main process, after the cells of a model, or of a shard of it."""

    def after_run(self, results: Sequence[ScoreResult], config: RunConfig) -> None:
        """Use the results at the end of a run, on its main process."""

    def demo(self) -> Iterator[PrintedTable | str]:
        """Yield sentences and tables that `cardiobench demo` prints before its run.

        Raises:
            UnknownName: A dataset, model or metric of the example is not installed; the demo then leaves it out.
        """
        yield from ()


def run_hooks(overriding: str = "") -> list[RunHooks]:
    """Return the hooks of all extensions, in the order of their names.

    Args:
        overriding: Name of a hook; the others are left out.
    """
    made: list[RunHooks] = [kind() for kind in extensions.hooks("hooks")]
    if not overriding:
        return made
    return [one for one in made if getattr(type(one), overriding) is not getattr(RunHooks, overriding)]
