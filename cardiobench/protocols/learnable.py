"""Checks that a task has labels to learn from."""

import numpy as np

from cardiobench.core.errors import NotApplicable
from cardiobench.protocols.base import TaskData


def learnable_classes(labels: np.ndarray) -> np.ndarray:
    """Return which classes of labels (n, K) are present in some rows and absent in others. The array is bool (K,)."""
    return (labels == 1).any(axis=0) & (labels == 0).any(axis=0)


def two_answers(labels: np.ndarray) -> bool:
    """Return whether labels, (n,) or (n, K), contain at least two classes to distinguish."""
    return bool(learnable_classes(labels).any()) if labels.ndim == 2 else len(np.unique(labels)) > 1


def check_learnable(data: TaskData, learner: str = "a probe") -> None:
    """Refuse a task without training rows or with a single class in them."""
    train = data.indices("train")
    if not len(train):
        raise NotApplicable(f"{data.task.name} has no training rows here, and {learner} learns from them")
    if not data.task.classes or two_answers(data.labels[train]):
        return
    if data.task.rules.answer == "labels":
        raise NotApplicable(
            f"{data.task.name} has no class that is present in some of its {len(train)} training rows here and absent in others"
        )
    only = data.task.classes[data.labels[train][0]]
    raise NotApplicable(
        f"all {len(train)} training rows of {data.task.name} are '{only}', and {learner} needs two classes"
    )
