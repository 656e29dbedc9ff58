"""Measure peak memory and scaling of a stage on stored embeddings of realistic size."""

import gc
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from cardiobench.core.memory import release_freed_memory
from cardiobench.data.references import references_of
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.protocols.analysis import Analysis
from cardiobench.protocols.base import TaskData
from tests.forked import clean_processes
from tests.protocols.conftest import BINARY, task_data

BUFFERS = 120  # MB for blocks of rows and similarities and for allocator overhead, at any size.
TURNS = 12  # Maximum seconds of a stage.
NOISE = 0.05  # Tolerance in CPU seconds between two runs; copying each recording costs more than this at the full size.


@dataclass(frozen=True)
class Stage:
    """Stage whose memory and time are measured.

    Attributes:
        run: Function of a store of embeddings and of the rows of a task.
        most: How many times as long twice the recordings may take; None if the time is not tested.
        count: Number of recordings whose time is compared with that of half of them.
    """

    run: Callable
    most: float | None = 2.5
    count: int = 40_000


def stored(folder, count, dim):
    """Return embeddings of this many recordings in shards of 4,096, and the task's rows."""
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(count) < 0.1, "yes", "no")
    split = np.array(["train", "validation", "test"])[np.searchsorted([0.7, 0.8], rng.random(count))]
    patients = [f"p{n // 2}" for n in range(count)]
    rows = task_data(BINARY, np.zeros((count, 1)), labels.tolist(), split.tolist(), patients).rows
    # Both recordings of a patient are in the same split.
    rows["split"] = rows.groupby("patient_id")["split"].transform("first")
    store = EmbeddingStore(folder, "org/name", "toy", {"revision": "1"})
    for start in range(0, count, 4096):
        ids = list(rows["id"][start : start + 4096])
        vectors = rng.standard_normal((len(ids), 1, dim), dtype=np.float32) / np.arange(1, dim + 1, dtype=np.float32)
        vectors[:, 0, 0] += 0.5 * (labels[start : start + 4096] == "yes")
        store.append(ids, ["1"] * len(ids), list(vectors))
    return store, rows


def load(store, rows):
    data = TaskData(BINARY, rows, store.load(rows["id"], ["1"] * len(rows)), "mean")
    return data, data.features


def across(store, rows):
    """Return two datasets, each with half of the recordings."""
    tasks = tuple(replace(BINARY, name=f"{name}/as") for name in ("one", "two"))
    halves = (rows.iloc[: len(rows) // 2], rows.iloc[len(rows) // 2 :])
    members = {task.name: half.reset_index(drop=True) for task, half in zip(tasks, halves, strict=True)}

    def opened(task, change):
        half = members[task.name]
        return TaskData(task, half, store.load(half["id"], ["1"] * len(half)), "mean")

    return Analysis("as", tasks, {}, 0, 10, opened, lambda task: references_of(members[task.name], task))


def status(name):
    return (
        next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if name in line) / 1e3
    )


def extra_memory(stage, store, rows):
    """Return the peak memory of a stage in MB, above the memory before it."""
    stage(store, rows.iloc[::50].reset_index(drop=True))  # Warm up imports and compilation.
    gc.collect()
    release_freed_memory()  # Otherwise the stage would receive it, and its requirements would stay hidden.
    Path("/proc/self/clear_refs").write_text("5")  # Reset the recorded peak.
    before = status("VmRSS")
    with threadpool_limits(1):
        stage(store, rows)
    return status("VmHWM") - before


def seconds(stage, store, rows):
    """Return the CPU seconds of a stage."""
    start = time.process_time()
    stage(store, rows)
    return time.process_time() - start


linux = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the peak of a stage is known on Linux only"
)


def check_memory(run: Callable, folder: Path) -> None:
    """Check that the peak of a stage is a small multiple of the embeddings, in a process that earlier stages cannot affect."""
    with ProcessPoolExecutor(1, mp_context=clean_processes()) as process:
        for count, dim in ((40_000, 64), (40_000, 256)):
            store, rows = stored(folder / str(dim), count, dim)
            peak = process.submit(extra_memory, run, store, rows).result()
            assert peak <= 2.5 * count * dim * 4 / 1e6 + BUFFERS, (count, dim)


def check_time(stage: Stage, folder: Path) -> None:
    """Check that twice the recordings take at most `stage.most` times as long.

    Use the minimum of several runs, because a busy machine makes a run longer, never shorter. Repetitions bring both minima closer
    to the true cost, so code that exceeds the limit does not pass by repetition.
    """
    store, rows = stored(folder, stage.count, 64)
    some, half, whole = rows.iloc[: stage.count // 2], [], []
    with threadpool_limits(1):
        stage.run(store, some)
        while len(half) < 2 or min(whole) > stage.most * min(half) + NOISE:
            half.append(seconds(stage.run, store, some))
            whole.append(seconds(stage.run, store, rows))
            assert len(half) < TURNS, (half, whole)
