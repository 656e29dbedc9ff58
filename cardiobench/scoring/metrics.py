"""Metrics of a task: its own, and those of its kind."""

from collections.abc import Sequence

import numpy as np

from cardiobench.core.errors import BadConfig
from cardiobench.core.registry import check_names, look_up
from cardiobench.metrics.load import load_metric, load_metrics
from cardiobench.tasks.task import Task, metrics_of, missing_metrics


def narrow_metrics(task: Task, names: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the metrics of a task among some names, the ranking metric first; all of them if no names are given.

    Raises:
        BadConfig: The ranking metric of the task is not among the names.
    """
    every, ranking = metrics_of(task), task.metrics[0]
    if names and ranking not in names:
        raise BadConfig(
            f"the metrics {', '.join(names)} lack {ranking}, which ranks models on {task.name}. Add {ranking}, "
            "or leave --metrics out."
        )
    return tuple(name for name in every if not names or name in names)


def check_metrics(tasks: Sequence[Task], names: Sequence[str]) -> None:
    """Check names of metrics for all tasks of a run; tasks whose own metrics are not here do not apply if others do.

    Raises:
        UnknownName: No task has a metric of that name.
        BadConfig: The ranking metric of a task is not among the names, or two metrics of a task compute the same
            number.
    """
    for task in [task for task in tasks if not missing_metrics(task)] or tasks:
        load_metrics(metrics_of(task))
        look_up(missing_metrics(task), load_metric)
    check_names("metric of these tasks", names, {name for task in tasks for name in metrics_of(task)})
    for task in tasks:
        narrow_metrics(task, names)


def macro_auroc(truth: np.ndarray, scores: np.ndarray) -> float:
    """Return the mean AUROC of the classes of a multilabel task, (n, K) each; NaN if no class can be ranked."""
    return load_metric("auroc_macro").compute(truth, scores)["auroc_macro"]
