"""Embeddings of several datasets with planted dimensions."""

import numpy as np

from cardiobench.data.spec import Task
from cardiobench.protocols.analysis import Analysis
from tests.protocols.conftest import task_data

NAMES = ("one", "two", "three")
APART = 20.0  # In units of the spread within a dimension.


def tasks(names=NAMES, label="cd"):
    return tuple(Task(f"{name}/{label}", "binary", label, ("f1_macro",), ("no", "yes")) for name in names)


def embeddings(n, dims, of_class=0, of_dataset=0, class_apart=APART, seed=0, names=NAMES):
    """Return (features, labels) by dataset: `of_class` dimensions encode only the class, `of_dataset` ones the dataset."""
    rng = np.random.default_rng(seed)
    found = {}
    for number, name in enumerate(names):
        labels = np.tile([1, 0], n // 2)
        features = rng.normal(size=(n, dims))
        features[:, :of_class] += class_apart * labels[:, None]
        # Each dataset has its own corner, and all corners have the same distance.
        own = np.arange(of_class, of_class + of_dataset) % len(names) == number
        features[:, of_class : of_class + of_dataset] += APART * own
        found[name] = features, labels
    return found


def study(found, resamples=20, subject="cd"):
    members = tasks(tuple(found), subject)
    data = {
        task.name: task_data(task, features, np.where(labels == 1, "yes", "no"), ["train"] * len(labels))
        for task, (features, labels) in zip(members, found.values(), strict=True)
    }
    return Analysis(
        subject, members, {"name": "a/b"}, 0, resamples, lambda task, change: data[task.name], lambda task: None
    )
