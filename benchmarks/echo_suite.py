"""Echo suite at the size of its releases: repeated tables of synthetic twins, and random embeddings of every recording.

`benchmarks/full_size.py --stages echo` measures it.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.core.config import RunConfig
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.open import open_dataset
from cardiobench.data.twin import write_twin
from cardiobench.models.load import load_model
from cardiobench.runner import evaluate, run
from cardiobench.runner.plan import plan_dataset
from cardiobench.scoring.suites import load_suite

MODEL, SUITE, PROTOCOLS = "cardiobench/constant", "cardiobench_echo_v1", ("zero_shot", "native", "probe", "knn")
RECORDINGS = {  # Number of clips or images in the releases.
    "camus": 1000,
    "cardiacnet": 704,
    "echonet_dynamic": 10_030,
    "echonet_lvh": 12_000,
    "echonet_pediatric": 7810,
    "hmc_qu": 322,
    "segrwma": 1660,
    "tmed2": 17_270,
}
FRAMES, DIM, SHARD, TWIN_PATIENTS = 16, 512, 512, 20


def repeated(dataset: OpenDataset, count: int) -> OpenDataset:
    """Return a dataset with this many recordings: its rows repeated as those of new patients."""
    frame = dataset.frame
    copy = np.arange(count) // len(frame)
    rows = frame.iloc[np.arange(count) % len(frame)].reset_index(drop=True)
    names = {task.unit_column for task in dataset.spec.tasks} | {"id", "patient_id", "study_id"}
    for column in names & set(rows):
        rows[column] = rows[column].astype(str) + pd.Series(copy).map("-{}".format)
    table = replace(
        dataset.table, listed=rows, frame=rows, missing=(), absent={}, digest=f"{dataset.table.digest}x{count}"
    )
    return replace(dataset, table=table)


def open_releases(folder: Path) -> dict[str, OpenDataset]:
    """Return every dataset of the suite at its full size; write missing twins first."""
    releases = {}
    for name, count in RECORDINGS.items():
        raw = folder / "twins" / name
        if not raw.exists():
            write_twin(name, raw, patients=TWIN_PATIENTS)
        releases[name] = repeated(open_dataset(name, raw, allow_missing=True), count)
    return releases


def fill_stores(releases: Mapping[str, OpenDataset], config: RunConfig) -> int:
    """Store random embeddings of all recordings without any; return the bytes of all embeddings."""
    model, rng, size = load_model(MODEL), np.random.default_rng(0), 0
    for dataset in releases.values():
        plan = plan_dataset(model, dataset, dataset.spec.tasks, config)
        parts = 1 if dataset.spec.media == "image" else FRAMES
        size += len(plan.indices) * parts * DIM * 4
        for start in range(0, len(plan.to_encode), SHARD):
            rows = dataset.frame.loc[plan.to_encode[start : start + SHARD]]
            vectors = rng.standard_normal((len(rows), parts, DIM), dtype=np.float32)
            plan.store.append(list(rows["id"]), list(rows["fingerprint"]), list(vectors), device="cpu")
    return size


def stored_suite(folder: Path, output: Path) -> tuple[RunConfig, int]:
    """Return the settings of a run of one model on the whole suite with stored embeddings, and their bytes."""
    releases = open_releases(folder)
    tasks = load_suite(SUITE).tasks
    config = RunConfig(models=(MODEL,), tasks=tasks, protocols=PROTOCOLS, output_dir=output, cache_dir=folder / "cache")
    size = fill_stores(releases, config)
    run.open_datasets = lambda tasks, config, **more: (releases, {})
    return config, size


def whole_suite(folder: Path, output: Path) -> Callable[[], str]:
    """Return a function that evaluates one model on the whole suite in one process, from stored embeddings to the report."""
    config, size = stored_suite(folder, output)
    config = replace(config, jobs=1)
    cpu: dict[str, dict[str, float]] = {}

    def timed(function: Callable[..., Any], label: Callable[[Any], tuple[str, str]]) -> Callable[..., Any]:
        def call(argument: Any, *more: Any) -> Any:
            start, (group, name) = time.process_time(), label(argument)
            try:
                return function(argument, *more)
            finally:
                cpu.setdefault(group, {})[name] = time.process_time() - start

        return call

    evaluate.evaluate_cell = timed(evaluate.evaluate_cell, lambda cell: (cell.task.name, cell.label))
    hooks = run.extensions.hooks
    run.extensions.hooks = lambda kind: [
        timed(hook, lambda cells, hook=hook: ("over datasets", hook.__name__)) if kind == "after_model" else hook
        for hook in hooks(kind)
    ]
    run.finalize = timed(run.finalize, lambda context: ("over datasets", "report"))

    def evaluated() -> str:
        start = time.process_time()
        summary = run.run(config)
        whole = time.process_time() - start
        assert not summary.failures, summary.failures
        lines = [f"{sum(RECORDINGS.values())} recordings, {size / 1e6:.0f} MB of embeddings; CPU s by task:"]
        for name, seconds in cpu.items():
            each = ", ".join(f"{label} {value:.1f}" for label, value in seconds.items())
            lines.append(f"  {name:<24}{sum(seconds.values()):6.1f}   {each}")
        rest = whole - sum(sum(seconds.values()) for seconds in cpu.values())
        return "\n".join([*lines, f"  {'plan and all else':<24}{rest:6.1f}"])

    return evaluated
