"""Fixtures: tasks with embeddings of known content."""

import numpy as np
import pandas as pd
import pytest

from cardiobench.data.spec import PromptGrid, Task
from cardiobench.embeddings.vectors import Embeddings
from cardiobench.protocols.base import TaskData

REGRESSION = Task("toy/ef", "regression", "ef", ("mae",), unit="%", prompt_grid=PromptGrid(0, 100, 1))
BINARY = Task("toy/as", "binary", "as", ("f1_macro",), ("no", "yes"))
VIEWS = Task("toy/view", "multiclass", "view", ("f1_macro",), ("A2C", "A4C", "PLAX"))


def task_data(task, features, labels, split, patients=None, pooling="mean", **columns):
    """Return task data with one part per recording, unless `features` is a list of (P, dim) arrays."""
    parts = [np.atleast_2d(vector) for vector in features]
    ids = [f"r{n}" for n in range(len(parts))]
    rows = pd.DataFrame({"id": ids, "patient_id": patients or ids, "split": split, task.target: labels, **columns})
    offsets = np.r_[0, np.cumsum([len(p) for p in parts])]
    return TaskData(task, rows, Embeddings(np.concatenate(parts).astype(np.float32), offsets), pooling)


@pytest.fixture
def regression():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(120, 6))
    labels = 55 + features @ np.array([4.0, -3.0, 0, 0, 0, 0]) + rng.normal(size=120)
    return task_data(REGRESSION, features, labels, ["train"] * 60 + ["validation"] * 20 + ["test"] * 40)


@pytest.fixture
def binary():
    rng = np.random.default_rng(2)
    features = rng.normal(size=(160, 5))
    labels = np.where(features[:, 0] + 0.3 * rng.normal(size=160) > 0.8, "yes", "no")
    return task_data(BINARY, features, labels, ["train"] * 80 + ["validation"] * 30 + ["test"] * 50)
