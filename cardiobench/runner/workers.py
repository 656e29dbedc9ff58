"""Compute cells in worker processes, on this machine, on a Dask cluster or on Ray.

The workers need only stored embeddings and facts of the model, not its network. Machines of a cluster read and write files on a
shared disk. Each worker uses one core, so results are bit-identical on all machines.
"""

import os
import threading
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import CardioBenchError, NotApplicable
from cardiobench.core.memory import memory_limit
from cardiobench.core.workers import share_calls
from cardiobench.embeddings.store import PROCESSES_HERE
from cardiobench.models.base import TextEncoder
from cardiobench.models.facts import without_network
from cardiobench.protocols.zero_shot import embed_texts
from cardiobench.runner.backends import Workers, environment, set_environment
from cardiobench.runner.cells.base import ComputedCell, Result
from cardiobench.runner.recent import RecentData

MEMORY_SHARE = 0.8
WORKER_BYTES = 500_000_000  # Memory for libraries, tables and results of a worker.
ONE_CELL = threading.Lock()  # A limit applies to all threads of a process, and a worker of Dask can have several.
COPIES = 3  # Number of copies: embeddings, pooled vectors and protocol data.
MIN_GROUPS = 4  # Minimum number of groups per worker for sending whole groups.
# Estimated costs for the decision to start workers. Cell costs are minima over protocols.
WORKER_SECONDS = 3.0  # Start of a worker, mainly imports.
CELL_SECONDS = 0.15  # Reading, intervals, floors and files of a cell.
SECONDS_PER_BYTE = 3e-9  # Reading the embeddings of a cell.


def detached(cell: ComputedCell[Result]) -> ComputedCell[Result]:
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
        index: Position among the cells.
        record: Record of the cell; None if it failed or the protocol does not apply.
        files: Paths of written files.
        reason: Reason why the protocol does not apply; empty otherwise.
        error: Error that ends the run; None without errors.
    """

    index: int
    record: Any
    files: Sequence[Path] = ()
    reason: str = ""
    error: CardioBenchError | None = None


def compute_group(cells: Sequence[tuple[int, ComputedCell[Any]]], variables: Mapping[str, str]) -> list[CellOutcome]:
    """Compute the cells of a message, given with their positions, under the environment variables of the run.

    The cells of a message read recordings once.
    """
    set_environment(variables)
    recent = RecentData()
    return [_outcome(index, cell, recent) for index, cell in cells]


def _outcome(index: int, cell: ComputedCell[Any], recent: RecentData) -> CellOutcome:
    try:
        record, files = on_one_core(cell, recent)
    except NotApplicable as error:
        return CellOutcome(index, None, reason=str(error))
    except CardioBenchError as error:
        return CellOutcome(index, None, error=error)
    return CellOutcome(index, record, files)


def on_one_core(cell: ComputedCell[Result], recent: RecentData) -> tuple[Result, Sequence[Path]]:
    """Compute a cell with one math-library thread, because the number of threads affects the last bits.

    A library that uses joblib within the cell would otherwise send each of its steps to the cluster that runs the cell.
    """
    from joblib import parallel_config
    from threadpoolctl import threadpool_limits

    with ONE_CELL, threadpool_limits(1), parallel_config("sequential"):
        return cell.compute(recent)


def compute_in_workers(
    groups: Sequence[Sequence[tuple[int, ComputedCell[Any]]]], workers: Workers
) -> Iterator[CellOutcome]:
    """Compute detached cells, and yield outcomes in order of completion.

    Args:
        groups: Cells with their positions; those of a group go to one worker.
        workers: Workers of an open backend.
    """
    messages = [(group, environment()) for group in groups]
    with warnings.catch_warnings():
        # A worker with increased memory is replaced between two cells, without losing results.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
        for outcomes in share_calls(compute_group, messages, workers.count, workers.executor):
            yield from outcomes


def grouped(positions: Sequence[int], keys: Sequence[Hashable], jobs: int) -> list[list[int]]:
    """Group positions by key, or use groups of one if workers would get fewer than `MIN_GROUPS` groups."""
    groups: dict[Hashable, list[int]] = {}
    for position, key in zip(positions, keys, strict=True):
        groups.setdefault(key, []).append(position)
    return list(groups.values()) if len(groups) >= MIN_GROUPS * jobs else [[one] for one in positions]


def n_jobs(config: RunConfig) -> int:
    """Return the number of parallel cells: available cores divided by the processes launched on this machine."""
    import joblib

    return config.jobs or max(1, joblib.cpu_count() // launched_here())


def launched_here() -> int:
    """Return the number of processes of this run on this machine."""
    return int(os.environ.get(PROCESSES_HERE) or 1)


def stored_bytes(cell: ComputedCell[Any]) -> int:
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
