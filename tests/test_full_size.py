"""Memory and time at a size where copies show: peak memory in embeddings, and how time grows with twice the recordings."""

import gc
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from cardiobench.core.memory import release_freed_memory
from cardiobench.data.references import references_of
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.protocols.analysis import Analysis, collapse_warnings
from cardiobench.protocols.base import TaskData
from cardiobench.protocols.confound import Confound
from cardiobench.protocols.cross_validation.protocol import CrossValidation
from cardiobench.protocols.few_shot import FewShot
from cardiobench.protocols.knn import NearestNeighbours
from cardiobench.protocols.probe import LinearProbe
from cardiobench.protocols.representation.protocol import Representation
from cardiobench.protocols.representation.sample import draw
from cardiobench.protocols.transfer import Transfer
from tests.protocols.analyses import study_of
from tests.protocols.conftest import BINARY, task_data

BUFFERS = 120  # MB: blocks of rows and of similarities, whatever the number of recordings, and what allocators waste
TURNS = 12  # of a stage, at most
NOISE = 0.05  # CPU seconds that two runs may differ by; what costs a copy a recording or worse takes more at this size


def stored(folder, count, dim):
    """Embeddings of so many recordings in shards of 4,096, and the task's rows."""
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(count) < 0.1, "yes", "no")
    split = np.array(["train", "validation", "test"])[np.searchsorted([0.7, 0.8], rng.random(count))]
    patients = [f"p{n // 2}" for n in range(count)]
    rows = task_data(BINARY, np.zeros((count, 1)), labels.tolist(), split.tolist(), patients).rows
    # A patient's two recordings are in one split.
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


def probe(store, rows):
    return LinearProbe().predict(load(store, rows)[0], None, "")


def knn(store, rows):
    return NearestNeighbours(max_queries=2000).predict(load(store, rows)[0], None, "")


def few_shot(store, rows):
    analysis = study_of(load(store, rows)[0], resamples=10)
    return FewShot(sizes=(1, 8), draws=2).analyze(analysis, None), collapse_warnings(analysis)


def cross_validation(store, rows):
    """The largest size: as many of each class as there are patients of the rarer one."""
    protocol = CrossValidation(classifiers=("logistic",), folds=3, inner=2)
    variant = "L.logistic" if len(rows) > 5000 else "XS.logistic"
    drawn = protocol.select_rows(rows, BINARY, variant).reset_index(drop=True)
    return protocol.predict(load(store, drawn)[0], None, variant)


def across(store, rows):
    """Two datasets of half the recordings each."""
    tasks = tuple(replace(BINARY, name=f"{name}/as") for name in ("one", "two"))
    halves = (rows.iloc[: len(rows) // 2], rows.iloc[len(rows) // 2 :])
    members = {task.name: half.reset_index(drop=True) for task, half in zip(tasks, halves, strict=True)}

    def opened(task, change):
        half = members[task.name]
        return TaskData(task, half, store.load(half["id"], ["1"] * len(half)), "mean")

    return Analysis("as", tasks, {}, 0, 10, opened, lambda task: references_of(members[task.name], task))


def transfer(store, rows):
    return Transfer().analyze(across(store, rows), None)


def confound(store, rows):
    return Confound(folds=3, inner=2).analyze(across(store, rows), None)


def representation_sample(store, rows):
    """What `representation` works on from there: at most 2,499 records of each dataset."""
    return draw(across(store, rows), Representation().most)


STAGES = {
    stage.__name__: stage
    for stage in (load, probe, knn, few_shot, cross_validation, transfer, confound, representation_sample)
}


def status(name):
    return (
        next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if name in line) / 1e3
    )


def extra_memory(stage, store, rows):
    """MB that a new process holds at the peak of a stage, above what it held before; what ran earlier here cannot change it."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(extra_memory_here, stage, store, rows).result()


def extra_memory_here(stage, store, rows):
    STAGES[stage](store, rows.iloc[::50].reset_index(drop=True))  # what is imported and compiled once
    gc.collect()
    release_freed_memory()  # else the stage would be given it, and what it needs would not be seen
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = status("VmRSS")
    with threadpool_limits(1):
        STAGES[stage](store, rows)
    return status("VmHWM") - before


def seconds(stage, store, rows):
    """CPU seconds of a stage."""
    start = time.process_time()
    STAGES[stage](store, rows)
    return time.process_time() - start


linux = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the peak of a stage is known on Linux only"
)


@linux
def test_probing_holds_no_copies_of_the_embeddings(tmp_path):
    store, rows = stored(tmp_path, 8000, 512)
    assert extra_memory("probe", store, rows) <= 2.5 * 8000 * 512 * 4 / 1e6 + BUFFERS


@linux
@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_peak_memory_is_a_small_multiple_of_the_embeddings(tmp_path, stage):
    for count, dim in ((40_000, 64), (40_000, 256)):
        store, rows = stored(tmp_path / str(dim), count, dim)
        assert extra_memory(stage, store, rows) <= 2.5 * count * dim * 4 / 1e6 + BUFFERS, (count, dim)


@pytest.mark.slow
@pytest.mark.parametrize(
    "stage, most",
    [
        ("load", 2.5),
        ("probe", 2.5),
        ("few_shot", 2.5),
        ("transfer", 2.5),
        ("confound", 2.5),
        ("representation_sample", 2.5),
        ("knn", 4),
    ],
)
def test_twice_the_recordings_take_about_twice_the_time(tmp_path, stage, most):
    """Allow neighbours four times as long: every test recording is compared with every training recording.

    The least of several turns counts: a busy machine makes a turn longer, never shorter. More turns bring both closer to
    what they cost, so that code which takes more than its share never passes by being repeated.
    """
    store, rows = stored(tmp_path, 40_000, 64)
    half, whole = [], []
    with threadpool_limits(1):
        STAGES[stage](store, rows.iloc[:20_000])
        while len(half) < 3 or min(whole) > most * min(half) + NOISE:
            half.append(seconds(stage, store, rows.iloc[:20_000]))
            whole.append(seconds(stage, store, rows))
            assert len(half) < TURNS, (half, whole)
