"""Synthetic board with many models and tasks."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from cardiobench.data import catalog
from cardiobench.results.collect import Collection, ResultEntry
from cardiobench.results.cost import Cost
from tests.hub.results import consistent

KINDS = ("binary", "multiclass")


def large(models: int = 100, tasks: int = 40, seed: int = 0) -> Collection:
    """Return results of every model on every task, with distinct scores, standard errors and costs."""
    rng = np.random.default_rng(seed)
    names = [name for name in catalog.list_tasks() if catalog.task(name).kind in KINDS]
    real = [name for name in names if not catalog.spec(name.partition("/")[0]).generated][:tasks]
    entries = []
    for model in range(models):
        quality, flops = rng.uniform(0.45, 0.9), float(10 ** rng.uniform(7, 12))
        facts = {"name": f"org/model-{model:03d}", "revision": "r1"}
        cost = Cost(768, 3072.0, "fp32", int(flops / 100), flops)
        for task in real:
            value = float(np.clip(quality + rng.normal(0, 0.05), 0.05, 0.94))
            result = consistent(task=task, value=value, model=facts, cost=cost)
            estimate = replace(result.score, se=0.02, n_patients=100)
            result = replace(result, overall={**result.overall, result.metric: estimate})
            entries.append(ResultEntry(Path(f"{model}/{task}"), result, pushed_by=f"lab{model % 7}"))
    return Collection(tuple(entries))
