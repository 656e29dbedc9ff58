"""Sketches of metric formulas, and of results for every kind of task."""

import json
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

from cardiobench import api
from cardiobench.data import catalog
from cardiobench.metrics.load import load_metric, own_metrics
from cardiobench.scoring.metrics import metrics_of
from tests.acceptance.runs import absent, records
from tests.contracts.metric_cases import CASES as INPUTS
from tests.versions.case import Case, plain
from tests.versions.datasets import ROUNDED
from tests.versions.sketch import numbers

TABLES = ("ptb_xl_sample/cd", "phantom_echo/ef", "phantom_echo/view", "phantom_ecg/findings")
WHOLE = ("segmentation", "landmarks", "cross_validation", "pooled_views", "own_views")
"""Runs of `tests.acceptance` for components without a smaller test."""


def formula(name: str) -> Case:
    """Return the case of a metric: its numbers and their names."""

    def make(folder: Path) -> list:
        metric, given = load_metric(name), INPUTS[name]
        found = metric.compute(**given)
        return [[crc32("\n".join(sorted(found)).encode())], *([value] for value in numbers(found))]

    return plain(make, f"metric {name}")


def answers(task_name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return references of 80 patients, and predictions for the test units, two thirds of which are correct."""
    task = catalog.task(task_name)
    number = np.arange(160)
    rows = pd.DataFrame(
        {
            "id": [f"r{one:03d}" for one in number],
            "patient_id": [f"p{one // 2:02d}" for one in number],
            "split": np.repeat(["train", "test"], 80),
            "sex": np.array(["F", "M"])[number // 2 % 2],
            "age": 30.0 + number % 61,
            "age_group": np.array(["0-45", "46-65", "66-"])[number // 2 % 3],
        }
    )
    code, wrong = number * 7 % (len(task.classes) or 9), number % 3 == 0
    if task.kind == "regression":
        rows["y_true"] = 30.0 + 5 * code + number % 2
        predicted = pd.DataFrame({"y_pred": rows["y_true"] + 4 * wrong - 0.7 * (number % 5)})
    elif task.kind == "multilabel":
        marked = np.stack([number * (k + 3) % 7 < 3 for k in range(len(task.classes))], axis=1)
        rows["y_true"] = [";".join(np.array(task.classes)[row]) for row in marked]
        shares = np.where(wrong[:, None], 0.4, 0.2 + 0.6 * marked) + (number % 11)[:, None] / 60
        predicted = pd.DataFrame(shares, columns=[f"p_{name}" for name in task.classes])
    else:
        rows["y_true"] = np.array(task.classes)[code]
        shares = np.full((len(number), len(task.classes)), 0.2) + number[:, None] % 5 / 20
        shares[number, np.where(wrong, (code + 1) % len(task.classes), code)] += 0.9
        predicted = pd.DataFrame(shares / shares.sum(axis=1, keepdims=True), columns=[f"p_{c}" for c in task.classes])
    predicted.insert(0, "id", rows["id"])
    return rows, predicted[rows["split"] == "test"]


def score(name: str) -> Case:
    """Return the case of scoring given predictions."""

    def make(folder: Path) -> list:
        references, predicted = answers(name)
        return fields(json.loads(json.dumps(api.score(predicted, name, references, resamples=100).to_json())))

    return plain(make, "scoring", *(f"metric {metric}" for metric in metrics_of(catalog.task(name))))


def fields(record: dict[str, Any]) -> list:
    """Return the numbers of each part of a result."""
    parts = ("overall", "floors", "verdict", "groups", "per_class", "bounds")
    return [list(numbers(record[part])) for part in parts if record.get(part)]


def whole(name: str) -> Case:
    """Return the case of a run, which names its components itself."""

    def make(folder: Path) -> tuple[list, set[str]]:
        found = records(name)
        output = [part for path in sorted(found) for part in fields(found[path])]
        return output, set().union(*(components_of(record["stamp"]["code"]) for record in found.values()))

    extra = {
        "cross_validation": ("best classifier", "dataset ptb_xl_sample"),
        "pooled_views": ("pooled views",),
        "own_views": ("own views",),
    }
    drawn = ("phantoms", "adapter pixel-patches", "adapter random-vit", "frame tokens")
    return Case(make, (*drawn, *extra.get(name, ())), slow=True, tolerance=ROUNDED)


def components_of(code: dict[str, str]) -> set[str]:
    """Return the ids in the stamp of a result: name and version, such as `protocol knn 1`."""
    lines = [(name, line) for name, text in code.items() for line in text.split(" < ")]
    return {line.rpartition(" ")[0] or name for name, line in lines}


CASES = {
    **{f"metric {name}": formula(name) for name in own_metrics()},
    **{f"score {name}": score(name) for name in TABLES},
    **{f"run {name}": whole(name) for name in WHOLE if not absent(name)},
}
