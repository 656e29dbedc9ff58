"""A label across datasets: which tasks ask the same question, and of which recordings."""

from collections.abc import Mapping, Sequence

import numpy as np

from cardiobench.data.spec import Task
from cardiobench.protocols.base import TaskData

SAME_RECORDINGS = {"ptb_xl_500": "ptb_xl", "ptb_xl_sample": "ptb_xl"}
"""Dataset -> the one that holds the same recordings in another form; the two are never compared with each other."""

EF_EDGES = (40.0, 50.0)
EF_CLASSES = ("reduced", "mildly reduced", "preserved")
"""Ejection fraction up to 40 %, between, and 50 % and more (universal definition of heart failure, Bozkurt et al. 2021)."""


def labels_across(tasks: Sequence[Task]) -> Mapping[str, tuple[Task, ...]]:
    """Label -> its tasks, one a dataset: `cd` -> ptb_xl/cd, georgia/cd; numbers other than the ejection fraction are left out.

    A task that asks the same of a part of a dataset, such as one hospital, is a part of it; and of datasets with the same
    recordings the first stands for all.
    """
    found: dict[str, dict[str, Task]] = {}
    for task in tasks:
        label = task.name.partition("/")[2]
        part_of_another = label != task.target and f"{task.dataset}/{task.target}" in {other.name for other in tasks}
        if part_of_another or (task.kind == "regression" and label != "ef"):
            continue
        recordings = SAME_RECORDINGS.get(task.dataset, task.dataset)
        found.setdefault(label, {}).setdefault(recordings, task)
    return {label: tuple(members.values()) for label, members in found.items()}


def class_names(task: Task) -> tuple[str, ...]:
    """Classes that a task's recordings are sorted into."""
    return task.classes if task.kind != "regression" else EF_CLASSES


def classes_of(data: TaskData) -> np.ndarray:
    """Class name of each line, (n,)."""
    codes = data.labels
    if data.task.kind == "regression":
        codes = np.where(codes <= EF_EDGES[0], 0, np.where(codes < EF_EDGES[1], 1, 2))
    return np.asarray(class_names(data.task), dtype=object)[codes]
