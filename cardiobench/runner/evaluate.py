"""Evaluate the cells of protocols that predict from embeddings."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from cardiobench.core.config import RunConfig
from cardiobench.core.workers import prepared
from cardiobench.models.base import LoadedModel
from cardiobench.protocols import choose, protocol_class
from cardiobench.protocols.base import PredictionProtocol
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.compute import compute_all
from cardiobench.runner.context import RunContext
from cardiobench.runner.eta import RemainingTime
from cardiobench.runner.members import train_members
from cardiobench.runner.plan import AbsentPlan, DatasetPlan
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
