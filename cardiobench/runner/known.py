"""Reuse results computed by others."""

from collections.abc import Callable, Mapping, Sequence

from cardiobench.core.config import RunConfig, flag_of
from cardiobench.core.errors import BadConfig
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.base import PredictionProtocol
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.compute import applies
from cardiobench.runner.context import RunContext
from cardiobench.runner.evaluate import make_cells
from cardiobench.runner.hooks import run_hooks
from cardiobench.runner.plan import DatasetPlan
from cardiobench.runner.processes import share


def check_reuse(config: RunConfig) -> None:
    """Reject `--reuse` with contradictory settings or without a supporting extension.

    Raises:
        BadConfig: The request cannot be served.
    """
    if not config.reuse:
        if config.reuse_from:
            raise BadConfig("--reuse-from names owners of results. Name their dataset with --reuse ORG/NAME.")
        return
    if not config.reuse_from:
        raise BadConfig(
            f"--reuse {config.reuse} takes answers that cannot be proved. Name the owners whose results you trust: "
            "--reuse-from OWNER."
        )
    if config.overwrite:
        raise BadConfig("--reuse takes existing results, but --overwrite recomputes them. Remove one of these flags.")
    if not run_hooks("known_results"):
        raise BadConfig(
            f"{flag_of(RunConfig, 'reuse')} {config.reuse}: no installed extension can find results. Install one, or leave the flag out."
        )


def known_results(cells: Sequence[Cell], context: RunContext) -> Mapping[str, Callable[[], None]]:
    """Return a mapping from cell key to a function that saves an existing result, or refuses it; empty without `--reuse`."""
    if not context.config.reuse:
        return {}
    found: dict[str, Callable[[], None]] = {}
    for hooks in run_hooks():
        found |= hooks.known_results(cells, context)
    return found


def without_result(cells: Sequence[Cell], context: RunContext) -> list[Cell]:
    """Return the cells without a local or published result, of cells that apply."""
    open_cells = [cell for cell in cells if cell.load_cached() is None]
    known = known_results(open_cells, context)
    return [cell for cell in open_cells if cell.key not in known]


def reuse(
    model: LoadedModel, plans: Mapping[str, DatasetPlan], protocols: Sequence[PredictionProtocol], context: RunContext
) -> set[str]:
    """Save published results for a model's cells, and return datasets without remaining cells.

    Args:
        model: Loaded model.
        plans: Mapping from dataset to plan, assuming that all recordings are readable.
        protocols: Protocols of the cells.
        context: Run context.

    Returns:
        Names of the datasets, equal on all processes; empty without `--reuse`.
    """
    if not context.config.reuse:
        return set()
    complete: list[str] = []
    if context.accelerator.is_main_process:
        planned = {
            name: [cell for cell in make_cells(model, plan, protocols, frozenset(), context) if not applies(cell)]
            for name, plan in plans.items()
        }
        cells = [cell for members in planned.values() for cell in members if not cell.load_cached()]
        for save in known_results(cells, context).values():
            save()
        complete = [name for name, members in planned.items() if all(map(Cell.load_cached, members))]
    if context.accelerator.num_processes > 1:
        (complete,) = share([complete])
    return set(complete)
