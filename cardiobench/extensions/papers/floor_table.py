"""Tabulate the floor of each task next to published scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import MissingData
from cardiobench.core.registry import look_up, unknown_name
from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.data.spec import Task
from cardiobench.extensions.papers.anchors import FOLDER, published_scores
from cardiobench.extensions.papers.tasks import definitions
from cardiobench.metrics.load import load_metric
from cardiobench.results.anchors import PublishedScore
from cardiobench.results.score_result import Floor
from cardiobench.tasks.floors import constant, floors
from cardiobench.tasks.labels import label_values
from cardiobench.tasks.task import unscorable

COUNTS = FOLDER / "class_counts.csv"
BALANCED = "classes balanced: constant 0.33 macro, 0.67 F1"


@dataclass(frozen=True)
class TaskFloors:
    """Floors of one task metric.

    Attributes:
        task: Task whose ranking metric has the floors.
        metric: Key of the ranking metric.
        higher_is_better: Direction of the metric.
        n: Number of test units, with their class counts in `classes`.
        classes: Mapping from class to number of test units; empty for regression.
        floors: Mapping with `best_uninformed`, `best_constant` and `train_constant`.
        constants: Mapping from constant answer to its score.
        labels: Source of the labels.
    """

    task: Task
    metric: str
    higher_is_better: bool
    n: int
    classes: dict[str, int]
    floors: dict[str, Floor]
    constants: dict[str, float]
    labels: str


def tasks_by_name(names: Sequence[str]) -> list[Task]:
    """Return tasks by name; a dataset name selects all of its tasks, an empty list selects every task."""

    def find(name: str) -> Sequence[Task]:
        if "/" in name:
            task = catalog.task(name)
            return catalog.members(task) if catalog.spans_datasets(task) else (task,)
        if name in catalog.list_datasets():
            return [*catalog.spec(name).tasks, *definitions(catalog.spec(name))]
        raise unknown_name("task or dataset", name, [*catalog.list_tasks(), *catalog.list_datasets()])

    return [task for some in look_up(names or catalog.list_datasets(), find) for task in some]


def task_floors(task: Task, data_dir: Path | None = None) -> TaskFloors:
    """Compute the floors of a task from raw data if available, else from bundled label counts.

    Raises:
        MissingData: Neither source is sufficient; the message states the missing data.
    """
    if task.dense:
        raise MissingData("the floors of single frames are images; the protocol dense prints them next to its scores")
    if lacking := unscorable(task):
        raise MissingData(f"{lacking}.")
    references, labels = _references(task, data_dir)
    metric = load_metric(task.metrics[0])
    key = metric.primary_key
    truth = references.loc[references["split"] == "test", "y_true"]
    if truth.empty:
        raise MissingData(f"{task.name}: its split has no test rows. Name another task.")
    y_true = label_values(truth, task)
    if task.rules.answer == "labels":
        found = floors(metric, key, task, references, y_true)
        positives = dict(zip(task.classes, np.nansum(y_true, axis=0).astype(int).tolist(), strict=True))
        return TaskFloors(task, key, metric.numbers[key].higher_is_better, len(truth), positives, found, {}, labels)
    if not task.classes:
        found = floors(metric, key, task, references, y_true)
        return TaskFloors(task, key, metric.numbers[key].higher_is_better, len(truth), {}, found, {}, labels)
    scores = {name: metric.value(constant(y_true, place))[key] for place, name in enumerate(task.classes)}
    classes = {name: int((truth == name).sum()) for name in task.classes}
    found = floors(metric, key, task, references, y_true)
    return TaskFloors(task, key, metric.numbers[key].higher_is_better, len(truth), classes, found, scores, labels)


def _references(task: Task, data_dir: Path | None) -> tuple[pd.DataFrame, str]:
    try:
        source = open_dataset(task.dataset, data_dir, need_media=False)
    except MissingData as error:
        known = bundled_references(task)
        if known is None:
            raise MissingData(f"the labels are in the raw data only. {error}") from None
        return known
    where = "generated data" if source.spec.generated else f"data in {source.raw}"
    return source.references(task), where + (" (synthetic twin)" if source.table.twin else "")


def bundled_references(task: Task) -> tuple[pd.DataFrame, str] | None:
    """Return synthetic references with the task's class counts and their source, or None if unknown.

    Ids and patients are empty, because counts do not identify patients.
    """
    name = f"{task.dataset}/view" if task.target == "view" else task.name
    counts = pd.read_csv(COUNTS)
    counts = counts[(counts["task"] == name) & counts["label"].isin(task.classes)]
    if counts.empty:
        return None
    rows = counts.loc[counts.index.repeat(counts["count"])]
    table = pd.DataFrame({"id": "", "patient_id": "", "split": rows["split"], "y_true": rows["label"]})
    return table.reset_index(drop=True), f"class counts of the {counts['source'].iloc[0]}"


BEATS = "above what guessing reaches"
NO_BETTER = "no better than guessing"
EQUALS = "equals the constant"


def compare_to_floor(row: PublishedScore, known: TaskFloors | None) -> str:
    """Compare a published score with the floor: equal to a constant, no better than guessing, or above.

    Equality applies to the last printed digit. "Above" does not imply significance, because no interval was published.
    The result is empty if the floor is unknown; if the task has no floor, it is the reason.
    """
    if row.metric == "f1_median":
        return BALANCED
    if known is None or row.metric != known.metric:
        return "" if "/" in row.task else "has no floor of a constant"
    floor, places = known.floors["best_uninformed"], row.decimals + (2 if row.percent else 0)
    if np.isnan(floor.value):
        return floor.reason.partition(":")[0]
    best = round(floor.value, places)
    equal = [name for name, score in known.constants.items() if round(score, places) == round(row.value, places)]
    if equal:
        return f"{EQUALS} {' or '.join(equal)}"
    if row.value > best if known.higher_is_better else row.value < best:
        return BEATS
    return NO_BETTER


def floor_table(tasks: Sequence[Task], data_dir: Path | None = None, others: bool = False) -> pd.DataFrame:
    """Tabulate floors without rounding: one row per published score, and one per task without any.

    Args:
        tasks: Tasks in table order.
        data_dir: Folder with optional raw data.
        others: Whether to include published scores without a single task, such as those of a label across datasets.

    Returns:
        Table with the columns task, metric, unit, n, best_uninformed, best_constant, best_constant_answer,
        train_constant, labels (source or missing data), known, no_floor (reason for a task with known labels), model,
        protocol, published_metric, condition, published, printed, source and verdict.
    """
    lines = []
    for task in tasks:
        try:
            known, labels = task_floors(task, data_dir), ""
        except MissingData as error:
            known, labels = None, str(error)
        shared = _floor_columns(task, known, labels)
        found = [_published_columns(row, known) for row in published_scores(task.name)]
        lines += [shared | line for line in found or [{}]]
    if others:
        names = {*catalog.list_tasks(), *catalog.list_defined_tasks()}
        lines += [
            {"task": row.task, "labels": "", "known": False, **_published_columns(row, None)}
            for row in published_scores()
            if row.task not in names
        ]
    return pd.DataFrame(lines)


def _floor_columns(task: Task, known: TaskFloors | None, labels: str) -> dict:
    metric = "" if unscorable(task) else load_metric(task.metrics[0]).primary_key
    shared = {"task": task.name, "metric": metric, "unit": task.unit, "labels": labels, "known": known is not None}
    if known is None:
        return shared | {"no_floor": "", "best_uninformed": np.nan}
    values = {name: floor.value for name, floor in known.floors.items()}
    answer, reason = known.floors["best_constant"].prediction, known.floors["best_uninformed"].reason
    return shared | {"n": known.n, "labels": known.labels, "no_floor": reason, "best_constant_answer": answer, **values}


def _published_columns(row: PublishedScore, known: TaskFloors | None) -> dict:
    return {
        "model": row.model,
        "protocol": row.protocol,
        "published_metric": row.metric,
        "condition": row.condition,
        "published": row.value,
        "printed": f"{row.printed} {row.interval}".rstrip(),
        "source": row.source,
        "verdict": compare_to_floor(row, known),
    }


def counts_by_table(table: pd.DataFrame) -> pd.DataFrame:
    """Count published classification scores that equal a constant or are no better than guessing.

    Returns:
        Table with the columns source, numbers, no_better and equal, over scores with known floors.
    """
    scored = table[table["known"] & table["best_uninformed"].notna() & (table["published_metric"] == "f1_macro")]
    rows = [
        {
            "source": source,
            "numbers": len(part),
            "no_better": int((part["verdict"] != BEATS).sum()),
            "equal": int(part["verdict"].str.startswith(EQUALS).sum()),
        }
        for source, part in scored.groupby("source", sort=True)
    ]
    return pd.DataFrame(rows, columns=["source", "numbers", "no_better", "equal"])
