"""Check that a task has labels to learn from."""

import numpy as np

from cardiobench.core.errors import NotApplicable
from cardiobench.protocols.base import TaskData


def check_learnable(data: TaskData, learner: str = "a probe") -> None:
    """Refuse a task that has nothing for a learner to learn from here: no training rows, or one class only."""
    train = data.indices("train")
    if not len(train):
        raise NotApplicable(f"{data.task.name} has no training rows here, and {learner} learns from them")
    if data.task.classes and len(np.unique(data.labels[train])) < 2:
        only = data.task.classes[data.labels[train][0]]
        raise NotApplicable(
            f"all {len(train)} training rows of {data.task.name} are '{only}', and {learner} needs two classes"
        )
