"""Labels shared by several datasets: which tasks have the same label, and for which recordings."""

from collections.abc import Mapping, Sequence

import numpy as np

from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.protocols.base import TaskData

EF_EDGES = (40.0, 50.0)
EF_CLASSES = ("reduced", "mildly reduced", "preserved")
"""Classes of the ejection fraction: up to 40 %, between, and at least 50 % (universal definition of heart failure,
Bozkurt et al. 2021)."""


def tasks_by_label(tasks: Sequence[Task]) -> Mapping[str, tuple[Task, ...]]:
    """Return a mapping from label to its tasks, one per dataset: `cd` -> ptb_xl/cd, georgia/cd.

    A task for a part of a dataset, such as one hospital, is left out if the whole dataset is available; of datasets
    with the same recordings one is used (`DatasetSpec.replaces`).
    """
    labels: dict[str, dict[str, Task]] = {}
    for task in tasks:
        whole = f"{task.dataset}/{task.target}"
        if task.where and task.name != whole and whole in {other.name for other in tasks}:
            continue
        members = labels.setdefault(task.name.partition("/")[2], {})
        if any(task.dataset in catalog.replaced_by(other.dataset) for other in members.values()):
            continue
        other = next(
            (name for name, one in members.items() if one.dataset in catalog.replaced_by(task.dataset)), task.dataset
        )
        members[other] = task
    return {label: tuple(members.values()) for label, members in labels.items()}


def class_tasks_by_label(tasks: Sequence[Task]) -> Mapping[str, tuple[Task, ...]]:
    """Return `tasks_by_label` for labels with one class per recording; ejection fraction is the only number with classes."""
    return tasks_by_label([task for task in tasks if task.rules.answer == "class" or task.name.endswith("/ef")])


def class_names(task: Task) -> tuple[str, ...]:
    """Return the classes of a task, or those of the ejection fraction for a regression."""
    return task.classes if task.rules.answer != "number" else EF_CLASSES


def classes_of(data: TaskData) -> np.ndarray:
    """Return the class name of each row. The shape is (n,)."""
    codes = data.labels
    if data.task.rules.answer == "number":
        codes = np.where(codes <= EF_EDGES[0], 0, np.where(codes < EF_EDGES[1], 1, 2))
    return np.asarray(class_names(data.task), dtype=object)[codes]
