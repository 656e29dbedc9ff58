"""Numbers of tasks with labels in frames: those of their metrics, by structure, and derived ones."""

import math

import pandas as pd

from cardiobench.metrics.load import load_metric
from cardiobench.metrics.number import Number, match_number
from cardiobench.tasks.dense_label import LENGTHS
from cardiobench.tasks.mask_volumes import EF_ERRORS
from cardiobench.tasks.task import Task

LENGTH_ERRORS = {
    length: Number(f"{length}_error", "lower", (0, math.inf), unit="mm", interval="log_t") for length in LENGTHS
}
"""Measurement between two landmarks -> key of its mean absolute error."""


def declared_numbers(task: Task) -> dict[str, Number]:
    """Return every number that a result of a task can have, without those of single structures."""
    derived = (*LENGTH_ERRORS.values(), *EF_ERRORS.values())
    metrics = (load_metric(name) for name in task.rules.frame_metrics)
    return {key: number for metric in metrics for key, number in metric.numbers.items()} | {
        number.key: number for number in derived
    }


def number_of(task: Task, key: str) -> Number:
    """Return the definition of a number of a task, such as `dice`, `dice_cavity`, `dice_ed` or `ivs_error`."""
    number = match_number(key, declared_numbers(task))
    if number is None:
        raise KeyError(f"no metric of {task.kind} declares {key}")
    return number


def structure_columns(task: Task, frame: pd.DataFrame) -> dict[str, list[str]]:
    """Return the columns with numbers of structures: key of the number -> its columns, in the order of the structures."""
    keys = [key for key, number in declared_numbers(task).items() if number.by_structure]
    found = {key: [f"{key}_{structure}" for structure in task.structures] for key in keys}
    return {key: columns for key, columns in found.items() if set(columns) & set(frame)}


def shown_by_structure(task: Task) -> set[str]:
    """Return the keys whose structures are numbers of a result: those named after their metric."""
    return {load_metric(name).primary_key for name in task.rules.frame_metrics}
