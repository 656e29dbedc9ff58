"""Age and sex as tasks: patient characteristics predicted from the ECG."""

from collections.abc import Sequence

from cardiobench.data.spec import Group, Task
from cardiobench.tasks.task import OLDEST

SEX_CLASSES = ("F", "M")


def age_task(dataset: str, groups: Sequence[Group]) -> Task:
    """Return the task of predicting age, with breakdowns by other groups."""
    return Task(
        f"{dataset}/age",
        "regression",
        "age",
        ("mae",),
        unit="years",
        label_range=(0.0, OLDEST),
        groups=_without("age", groups),
        description="age",
    )


def sex_task(dataset: str, groups: Sequence[Group]) -> Task:
    """Return the task of predicting sex, with breakdowns by other groups."""
    return Task(
        f"{dataset}/sex", "binary", "sex", ("f1_macro",), SEX_CLASSES, groups=_without("sex", groups), description="sex"
    )


def _without(name: str, groups: Sequence[Group]) -> tuple[Group, ...]:
    return tuple(group for group in groups if group.name != name)
