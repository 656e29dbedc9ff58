"""Test that recordings of a cell are read once per process, and are not sent to workers."""

import copy
import pickle
from types import SimpleNamespace

import pandas as pd
import pytest

from cardiobench.data import catalog
from cardiobench.runner.recent import RecentData


@pytest.fixture
def cell():
    """Return a cell with two recordings, whose store counts how often it is read."""
    reads = []

    def load(ids, fingerprints):
        reads.append(list(ids))
        return SimpleNamespace(vectors=bytes(1_000_000))

    return SimpleNamespace(
        rows=pd.DataFrame({"id": ["a", "b"], "fingerprint": ["1", "2"]}),
        unreadable=frozenset(),
        task=catalog.task("phantom_ecg/cd"),
        variant="",
        protocol=SimpleNamespace(select_rows=lambda rows, task, variant: rows, keeps_training=False),
        plan=SimpleNamespace(store=SimpleNamespace(load=load, reads=reads)),
        model=SimpleNamespace(pooling="mean", several_vectors=False),
        config=SimpleNamespace(prompts=None),
    )


def test_recordings_are_read_once_and_not_sent_to_workers(cell):
    recent = RecentData()
    assert recent.of(cell) is recent.of(cell)
    assert cell.plan.store.reads == [["a", "b"]]
    assert len(pickle.dumps(recent)) < 1_000
    copy.copy(recent).of(cell)  # A copy is made like in a worker.
    assert len(cell.plan.store.reads) == 2
