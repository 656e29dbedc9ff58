"""Test that recordings of a cell are read once per process, and are not sent to workers."""

import copy
import pickle
from types import SimpleNamespace

import pandas as pd
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.data import catalog
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.recent import RecentData

TASK = catalog.task("phantom_ecg/cd")


@pytest.fixture
def cell():
    """Return a cell with two recordings, whose store counts how often it is read."""
    reads = []

    def load(ids, fingerprints):
        reads.append(list(ids))
        return SimpleNamespace(vectors=bytes(1_000_000))

    rows = pd.DataFrame({"id": ["a", "b"], "fingerprint": ["1", "2"]})
    dataset = SimpleNamespace(task_rows=lambda task: rows)
    plan = SimpleNamespace(dataset=dataset, store=SimpleNamespace(load=load, reads=reads))
    protocol = SimpleNamespace(select_rows=lambda rows, task, variant: rows, keeps_training=False)
    model = SimpleNamespace(pooling="mean", several_vectors=False)
    return Cell(model, protocol, RunConfig(), TASK.name, (TASK,), plan, "", frozenset())


def test_recordings_are_read_once_and_not_sent_to_workers(cell):
    recent = RecentData()
    assert cell.read(recent) is cell.read(recent)
    assert cell.plan.store.reads == [["a", "b"]]
    assert len(pickle.dumps(recent)) < 1_000
    cell.read(copy.copy(recent))  # A copy is made like in a worker.
    assert len(cell.plan.store.reads) == 2
