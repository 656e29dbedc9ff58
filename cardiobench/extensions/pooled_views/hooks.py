"""Score pooled views after each model."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cardiobench.core.config import RunConfig
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.spec import Task
from cardiobench.extensions.pooled_views.pool import is_member, pool_views, unmixed
from cardiobench.extensions.pooled_views.tasks import POOLED
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.context import RunContext
from cardiobench.runner.hooks import RunHooks


class PooledViewHooks(RunHooks):
    """Hooks that pool the view predictions of several datasets into one result."""

    def announce(self, tasks: Sequence[Task], datasets: Mapping[str, OpenDataset], config: RunConfig) -> Iterator[str]:
        """Yield a line that names the datasets whose view predictions will be pooled."""
        members = {
            task.dataset: datasets[task.dataset]
            for task in tasks
            if is_member(task) and task.dataset in datasets and not config.shard
        }
        if len(chosen := unmixed(members)) > 1:
            yield f"{POOLED.name}: the views of {', '.join(chosen)} are also scored together, beside the requested tasks"

    def after_model(self, cells: Iterable[Cell], context: RunContext) -> None:
        """Score pooled view predictions for each protocol with at least two datasets."""
        pool_views(cells, context)
