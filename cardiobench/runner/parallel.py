"""Evaluate cells in parallel in this process and workers of this machine, on a Dask cluster or on Ray.

Cells read embeddings from the store and write their own files, so remote workers need the cache and output folders on a
shared disk. Each worker uses one core, so results are bit-identical on all machines of a kind.
"""

import os
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import CardioBenchError, NotApplicable
from cardiobench.core.memory import memory_limit
from cardiobench.core.workers import prepared, share_calls
from cardiobench.embeddings.store import PROCESSES_HERE
from cardiobench.models.base import TextEncoder
from cardiobench.models.facts import without_network
from cardiobench.protocols import choose, protocol_class
from cardiobench.protocols.zero_shot import embed_texts
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.backends import backend, call_on_cluster, environment, set_environment
from cardiobench.runner.cell import BaseCell, Cell, Result
from cardiobench.runner.compute import check_applies, load_or_compute, not_applicable
from cardiobench.runner.context import RunContext
from cardiobench.runner.eta import (
    DurationEstimator,
    count_records,
    format_seconds,
    one_of_each_first,
    remaining_seconds,
    variants_of_run,
)
from cardiobench.scoring.suites import load_suite

Evaluate = Callable[[Any], tuple[Any, Sequence[Path]]]
MEMORY_SHARE = 0.8
WORKER_BYTES = 500_000_000  # Memory for libraries, tables and results of a worker.
ONE_CELL = threading.Lock()  # A limit applies to all threads of a process, and a worker of Dask can have several.
COPIES = 3  # Number of copies: embeddings, pooled vectors and protocol data.
MIN_GROUPS = 4  # Minimum number of groups per worker for sending whole groups.
# Estimated costs for the decision to start workers. Cell costs are minima over protocols.
WORKER_SECONDS = 3.0  # Start of a worker, mainly imports.
CELL_SECONDS = 0.15  # Reading, intervals, floors and files of a cell.
SECONDS_PER_BYTE = 3e-9  # Reading the embeddings of a cell.


def run_parallel(cells: Sequence[Cell], evaluate: Evaluate, context: RunContext) -> None:
    """Run cells of one protocol on one dataset in parallel, reporting the remaining time.

    Finished cells are kept, so an interrupted run continues with the missing ones.

    Args:
        cells: Cells of one protocol and dataset.
        evaluate: Function that computes and saves the result of a cell.
        context: Run context.
    """
    cells = applicable(cells, context)
    if not cells:
        return
    first, config, console = cells[0], context.config, context.console
    cached = {} if config.overwrite else {n: result for n, cell in enumerate(cells) if (result := cell.load_cached())}
    todo = [n for n in range(len(cells)) if n not in cached]
    todo = [todo[position] for position in one_of_each_first([cells[n].variant for n in todo])]
    dataset = f"{first.dataset.spec.name} with {first.model.name}"
    counts = f"{first.protocol.name}: {len(cells)} cells of {dataset}, {len(cached)} kept, {len(todo)} to do"
    if not todo:
        console.print(counts)
        _collect(cells, cached, {}, context)
        return
    durations = DurationEstimator(first.protocol, context.summary.results)
    outcomes: dict[int, CellOutcome] = {}
    records = dict(zip(todo, count_records([cells[n] for n in todo]), strict=True))

    def print_eta(source: str) -> None:
        waiting = [n for n in todo if n not in outcomes]
        costs = [durations.estimate(cells[n].variant, first.model.name, records[n]) for n in waiting]
        seconds = remaining_seconds(costs, slots)
        console.print(f"  about {format_seconds(seconds)} for {len(waiting)} cells, by what {source} took")
        whole = variants_of_run(first, config)
        if len(whole) > len(cells):
            seconds = sum(count * durations.estimate(variant) for variant, count in Counter(whole).items()) / slots
            console.print(f"  at most about {format_seconds(seconds)} for all {len(whole)} cells of this run")

    unknown = {cells[n].variant for n in todo if not durations.knows(cells[n].variant, first.model.name)}
    jobs = min(n_jobs(config), jobs_by_memory(stored_bytes(first)))
    with backend(config.backend, jobs, len(todo)) as slots:
        console.print(f"{counts}, {slots} at a time")
        if durations:
            print_eta("those before them")
        else:
            for line in first.protocol.plan_lines():
                console.print(f"  {line}")
        with console.progress(dataset, len(todo), doing="evaluating") as advance:
            for outcome in dispatch([detached(cells[n]) for n in todo], evaluate, config, jobs):
                if outcome.error:
                    raise outcome.error
                outcomes[todo[outcome.index]] = outcome
                first_known = not durations
                if outcome.result:
                    durations.update(outcome.result)
                last_kind = unknown == {cells[todo[outcome.index]].variant}
                unknown.discard(cells[todo[outcome.index]].variant)
                if durations and len(outcomes) < len(todo) and (first_known or last_kind):
                    print_eta("the first cell of each protocol" if last_kind else "the first")
                advance(1)
    _collect(cells, cached, outcomes, context)


def applicable(cells: Sequence[Cell], context: RunContext) -> list[Cell]:
    """Return the applicable cells and add the others to the summary without starting workers for them."""
    kept = []
    for cell in cells:
        try:
            check_applies(cell)
            kept.append(cell)
        except NotApplicable as error:
            not_applicable(cell, str(error), context)
    return kept


def sendable(cell: BaseCell[Any]) -> bool:
    """Return whether a cell can run in a worker process without the model's network."""
    return cell.protocol.works_from_embeddings(cell.model.encoder)


def detached(cell: BaseCell[Result]) -> BaseCell[Result]:
    """Return a cell without the model's network, but with vectors of the texts that its protocol needs.

    Raises:
        CardioBenchError: The model cannot encode the texts.
    """
    encoder = cell.model.encoder
    vectors = {}
    if isinstance(encoder, TextEncoder):
        texts = cell.protocol.texts(cell.tasks, cell.config.prompts)
        vectors = {tuple(one): embed_texts(encoder, one) for one in texts}
    return replace(cell, model=without_network(cell.model, vectors))


@dataclass(frozen=True)
class CellOutcome:
    """Outcome of one cell.

    Attributes:
        index: Position among dispatched cells.
        result: Record of the cell; None if it failed or the protocol does not apply.
        files: Paths of written files.
        reason: Reason why the protocol does not apply; empty otherwise.
        error: Error that ends the run; None without errors.
    """

    index: int
    result: Any
    files: Sequence[Path]
    reason: str = ""
    error: CardioBenchError | None = None


def run_one(index: int, cell: BaseCell[Any], evaluate: Evaluate) -> CellOutcome:
    """Evaluate a cell on one core."""
    try:
        result, files = on_one_core(evaluate, cell)
    except NotApplicable as error:
        return CellOutcome(index, None, [], str(error))
    except CardioBenchError as error:
        return CellOutcome(index, None, [], error=error)
    return CellOutcome(index, result, files)


def run_group(
    cells: Sequence[tuple[int, BaseCell[Any]]], evaluate: Evaluate, variables: Mapping[str, str]
) -> list[CellOutcome]:
    """Evaluate the cells of a message with their positions and the environment variables of the run."""
    set_environment(variables)
    return [run_one(index, cell, evaluate) for index, cell in cells]


def on_one_core(evaluate: Evaluate, cell: BaseCell[Any]) -> Any:
    """Evaluate a cell with one math-library thread, because the number of threads affects the last bits.

    A library that uses joblib within the cell would otherwise send each of its steps to the cluster that runs the cell.
    """
    from joblib import parallel_config
    from threadpoolctl import threadpool_limits

    with ONE_CELL, threadpool_limits(1), parallel_config("sequential"):
        return evaluate(cell)


def n_jobs(config: RunConfig) -> int:
    """Return the number of parallel cells: available cores divided by the processes launched on this machine."""
    import joblib

    return config.jobs or max(1, joblib.cpu_count() // launched_here())


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
    import_module("cardiobench.runner.evaluate")  # It imports this module.
    for name in choose(load_suite(config.suite).protocols if config.suite else config.protocols):
        protocol_class(name)


def launched_here() -> int:
    """Return the number of processes of this run on this machine."""
    return int(os.environ.get(PROCESSES_HERE) or 1)


def compute_apart(
    cells: Sequence[BaseCell[Any]],
    compute: Evaluate,
    context: RunContext,
    name: str,
    together: Callable[[Any], Hashable] = id,
    done: Collection[str] = (),
) -> dict[int, CellOutcome]:
    """Compute uncached cells in worker processes if they can be sent there.

    Args:
        cells: Cells of one model.
        compute: Function that computes and saves the record of a cell.
        context: Run context.
        name: Name for the progress bar.
        together: Function from cell to key; with enough groups, one worker computes all cells of a group.
        done: Keys of cells trained on this process.

    Returns:
        Mapping from position to outcome, complete up to the first failure; empty if one process is as fast.
    """
    config = context.config
    apart = [n for n, cell in enumerate(cells) if sendable(cell) and cell.key not in done]
    todo = [n for n in apart if config.overwrite or not cells[n].load_cached()]
    sizes = {n: stored_bytes(cells[n]) for n in todo}
    jobs = min(n_jobs(config), jobs_by_memory(max(sizes.values(), default=0)))
    chosen = config.jobs is not None or config.backend != "loky"
    alone = min(jobs, len(todo)) < 2 and config.backend == "loky"
    if alone or not todo or not (chosen or workers_pay(list(sizes.values()), jobs)):
        return {}
    sent = dict(_detached_cells(cells, todo))
    todo = list(sent)
    todo.sort(key=expected_cost(cells, sizes, context.summary.results), reverse=True)
    groups = _grouped(todo, [together(cells[n]) for n in todo], jobs)
    outcomes: dict[int, CellOutcome] = {}
    failed = len(cells)
    with (
        backend(config.backend, jobs, len(groups)),
        context.console.progress(name, len(todo), doing="evaluating") as advance,
    ):
        for outcome in dispatch(sent, compute, config, jobs, groups):
            n = outcome.index
            outcomes[n] = outcome
            failed = min(failed, n) if outcome.error else failed
            advance(1)
            if all(earlier in outcomes for earlier in todo if earlier <= failed):
                break  # Do not start cells after a failure, as in a serial run.
    return outcomes


def expected_cost(
    cells: Sequence[BaseCell[Any]], sizes: Mapping[int, int], results: Sequence[ScoreResult]
) -> Callable[[int], tuple[int, float]]:
    """Return the key by which cells are sorted, because a long cell at the end would occupy a single process.

    Args:
        cells: Cells of one model.
        sizes: Size of embeddings in bytes by position.
        results: Results of other models, whose times order the protocols and tasks of a dataset.
    """
    seconds = {(result.protocol, result.task): float(result.stamp.get("seconds", 0)) for result in results}

    def cost(n: int) -> tuple[int, float]:
        known = [seconds.get((cells[n].protocol.name, task.name), 0.0) for task in cells[n].tasks]
        return sizes[n], max(known, default=0.0)

    return cost


def _detached_cells(cells: Sequence[BaseCell[Any]], positions: Sequence[int]) -> Iterator[tuple[int, BaseCell[Any]]]:
    """Yield detached cells; cells whose texts cannot be encoded remain on this process, which reports the reason."""
    for n in positions:
        try:
            yield n, detached(cells[n])
        except CardioBenchError:
            continue


def _grouped(positions: Sequence[int], keys: Sequence[Hashable], jobs: int) -> list[list[int]]:
    """Group positions by key, or use groups of one if workers would get fewer than `MIN_GROUPS` groups."""
    groups: dict[Hashable, list[int]] = {}
    for position, key in zip(positions, keys, strict=True):
        groups.setdefault(key, []).append(position)
    return list(groups.values()) if len(groups) >= MIN_GROUPS * jobs else [[one] for one in positions]


def settle(
    cell: BaseCell[Result], outcome: CellOutcome | None, compute: Evaluate, context: RunContext
) -> Result | None:
    """Add the record of a cell to the summary, from a worker, from disk or by computing it now.

    Raises:
        CardioBenchError: The cell failed.
    """
    if outcome is None:
        here = (lambda one: on_one_core(compute, detached(one))) if sendable(cell) else compute
        return load_or_compute(cell, here, context)
    if outcome.error:
        raise outcome.error
    result: Result | None = outcome.result
    if result is None:
        not_applicable(cell, outcome.reason, context)
    else:
        context.summary.add(result, outcome.files)
    return result


def stored_bytes(cell: BaseCell[Any]) -> int:
    """Return the total size of a cell's embedding stores."""
    return sum(file.stat().st_size for store in cell.stores for file in store.folder.glob("*.arrow"))


def workers_pay(sizes: Sequence[int], jobs: int) -> bool:
    """Return whether workers save more time than they need to start.

    Args:
        sizes: Size of each cell's embeddings in bytes.
        jobs: Number of workers.
    """
    prices = [CELL_SECONDS + SECONDS_PER_BYTE * size for size in sizes]
    return sum(prices) - max(sum(prices) / jobs, max(prices)) > WORKER_SECONDS


def jobs_by_memory(size: int) -> int:
    """Return the number of workers that fit in memory with embeddings of a size."""
    return max(1, int(MEMORY_SHARE * memory_limit()) // launched_here() // (WORKER_BYTES + COPIES * size))


def _collect(
    cells: Sequence[Cell],
    cached: Mapping[int, ScoreResult],
    outcomes: Mapping[int, CellOutcome],
    context: RunContext,
) -> None:
    """Add all results, or reasons for their absence, to the summary in cell order."""
    for n, cell in enumerate(cells):
        if n in cached:
            context.summary.add(cached[n], earlier=True)
        elif (result := outcomes[n].result) is None:
            not_applicable(cell, outcomes[n].reason, context)
        else:
            context.summary.add(result, outcomes[n].files)


def dispatch(
    cells: Sequence[BaseCell[Any]] | Mapping[int, BaseCell[Any]],
    evaluate: Evaluate,
    config: RunConfig,
    jobs: int | None = None,
    groups: Sequence[Sequence[int]] | None = None,
) -> Iterator[CellOutcome]:
    """Evaluate cells on the open `backend`, and yield outcomes in order of completion.

    Args:
        cells: Detached cells of one model by position.
        evaluate: Function that computes and saves the record of a cell.
        config: Settings of the run.
        jobs: Number of parallel cells on this machine; None for `n_jobs`.
        groups: Groups of positions for the same worker; None for separate cells.
    """
    groups = [[n] for n in range(len(cells))] if groups is None else groups
    variables = environment()
    messages = [([(n, cells[n]) for n in group], evaluate, variables) for group in groups]
    with warnings.catch_warnings():
        # A worker with increased memory is replaced between two cells, without losing results.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
        for outcomes in (
            share_calls(run_group, messages, jobs or n_jobs(config))
            if config.backend == "loky"
            else call_on_cluster(config.backend, run_group, messages)
        ):
            yield from outcomes
