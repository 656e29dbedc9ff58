"""Results as entries of the `model-index` of a model card."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cardiobench.core.io import to_plain
from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.hub import naming
from cardiobench.results.formatting import OWN_DATA, coverage, flags, verdict
from cardiobench.results.score_result import ScoreResult

BENCHMARK = "CardioBench"


def entry(result: ScoreResult, user: str, url: str, revision: str | None, beside: Sequence[str] = ()) -> dict[str, Any]:
    """Return one result with all its metrics.

    Args:
        result: Result of one task under one protocol.
        user: User who ran it.
        url: URL of the complete result file.
        revision: Commit of the dataset on the Hub; None if this version is not published.
        beside: Sentences that compare the result with references, such as training from scratch.
    """
    task = catalog.task(result.task)
    spec = catalog.spec(task.dataset)
    dataset = {
        "type": naming.dataset_id(result),
        "name": spec.title,
        "config": "default",
        "split": naming.SPLIT,
        **({"revision": revision} if revision else {}),
        "args": {"version": result.dataset.get("version", spec.version), "digest": result.dataset.get("digest", "")},
    }
    return {
        "task": {"type": task_type(task, spec.modality), "name": task.description or task.name},
        "dataset": dataset,
        "metrics": [
            metric(result, name, user, beside if name == result.metric else ()) for name in naming.defined(result)
        ],
        "source": {"name": f"{BENCHMARK}, run by {user}", "url": url},
    }


def task_type(task: Task, modality: str) -> str:
    """Return a task type known to the Hub, which has none for signals or for numbers from images."""
    by_answer = "image-classification" if modality == "echo" and task.classes else "other"
    return task.rules.hub_type or by_answer


def metric(result: ScoreResult, name: str, user: str, beside: Sequence[str] = ()) -> dict[str, Any]:
    """Return one metric; `args` contains the context of the number and its author."""
    estimate = result.overall[name]
    args: dict[str, Any] = {
        "benchmark": BENCHMARK,
        "task": result.task,
        "protocol": result.label,
        "run_by": user,
        "n": estimate.n,
        "n_patients": estimate.n_patients,
        "coverage": coverage(result),
        "collapsed": result.collapsed,
        "seen_in_pretraining": naming.known(result.seen_in_pretraining),
    }
    if math.isfinite(estimate.low):
        args["ci95"] = [estimate.low, estimate.high]
    if name == result.metric:
        floor = {"floor": result.floor.value} if math.isfinite(result.floor.value) else {}
        args |= {**floor, "verdict": verdict(result), "generated": result.generated}
        args |= {"cost": to_plain(result.cost)} if result.cost else {}
        args |= {"beside_references": list(beside)} if beside else {}
    # The name also says that a result is not a score of patients, because pages that list results show little else.
    marks = {"synthetic_twin": result.dataset.get("twin"), "first_patients": result.dataset.get("limit")}
    args |= {key: mark for key, mark in marks.items() if mark}
    tried_out = [flag for flag in flags(result) if flag.startswith(("synthetic", "first", OWN_DATA))]
    return {
        "type": name,
        "name": f"{name} ({', '.join([result.task, result.label, *tried_out])})",
        "value": estimate.value,
        "args": args,
    }


def sentences(metrics: Iterable[Mapping[str, Any]], result: ScoreResult, user: str) -> list[str]:
    """Return the sentences about references that the metrics of a card have for a result."""
    own = [one["args"].get("beside_references") for one in metrics if key(one) == (user, result.task, result.label)]
    return [str(text) for texts in own if isinstance(texts, list) for text in texts]


def key(metric: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """Return user, task and protocol of a metric; None if it is not from this benchmark."""
    args = metric.get("args") if isinstance(metric, Mapping) else None
    if not isinstance(args, Mapping) or args.get("benchmark") != BENCHMARK:
        return None
    return str(args.get("run_by")), str(args.get("task")), str(args.get("protocol"))
