"""Split of patients into those for training and those for choosing the epoch."""

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from cardiobench.core.errors import NotApplicable
from cardiobench.protocols.base import TaskData
from cardiobench.protocols.learnable import two_answers


def fit_and_held(data: TaskData, seed: int, learner: str) -> tuple[np.ndarray, np.ndarray]:
    """Return training rows (n,) and rows for choosing the epoch (m,), without common patients and test patients.

    The latter are the validation split, or a fifth of the training patients if there is none.

    Args:
        data: Recordings of the task.
        seed: Seed of the draw among training patients.
        learner: Name of the learner with its article, for messages.

    Raises:
        NotApplicable: There is a single training patient or a single class.
    """
    train, validation = data.indices("train"), data.indices("validation")
    unmeasured = np.isnan(data.labels.reshape(len(data.labels), -1)[validation]).all(axis=1)
    if not unmeasured.all():
        return train, validation[~unmeasured]
    patients = data.patients[train]
    if len(np.unique(patients)) < 2:
        raise NotApplicable(f"{data.task.name} has 1 patient to learn from here, and {learner} needs 2 or more")
    splitter = GroupShuffleSplit(1, test_size=0.2, random_state=seed)
    ((fit, held),) = splitter.split(train, groups=patients)
    if data.task.classes and not two_answers(data.labels[train[fit]]):
        raise NotApplicable(f"{data.task.name} has too few patients of its rarer class to learn from here")
    return train[fit], train[held]
