"""Dry run: the plan, the time and disk that encoding takes, and what is missing; nothing is written."""

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.core.errors import BadMedia
from cardiobench.embeddings.extract import PartEncoder
from cardiobench.models.base import LoadedModel
from cardiobench.models.contract import transform
from cardiobench.protocols.base import PredictionProtocol
from cardiobench.runner.context import RunContext, RunSummary
from cardiobench.runner.evaluate import make_cells
from cardiobench.runner.plan import DatasetPlan, plan_model
from cardiobench.runner.processes import start_processes
from cardiobench.runner.run import load_models, print_data, resolve


@dataclass
class DryRun:
    """The outcome of a dry run.

    Attributes:
        rows: for each model and dataset: recordings to encode with the seconds and bytes that they will take, cells
            and those of them that are cached.
        free_bytes: on the disk of the embeddings.
        absent: dataset -> why its data is not here.
        problems: why the run would not do all of it.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    free_bytes: int = 0
    absent: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0 = it would run, 1 = part of it would fail."""
        return 1 if self.problems else 0


def dry_run(config: RunConfig, console: Console) -> DryRun:
    """Plan a run and price it: one recording of each dataset is encoded to see what it takes.

    Raises:
        CardioBenchError: the request is wrong as a whole.
    """
    request = resolve(config)
    config = request.config
    context = RunContext(config, start_processes(), RunSummary(), console)
    print_data(request, console)
    plan = DryRun(free_bytes=free_bytes(config.cache_dir), absent=dict(request.absent))
    for model, protocols, datasets in load_models(request, context):
        names = [protocol.name for protocol in protocols]
        predicting = [protocol for protocol in protocols if isinstance(protocol, PredictionProtocol)]
        for name, dataset in plan_model(model, request.tasks, datasets, names, context).items():
            cells = make_cells(model, dataset, predicting, frozenset(), context)
            seconds, size = price(model, dataset, context.accelerator.device)
            row = {"model": model.name, "dataset": name, "to_encode": len(dataset.to_encode), "seconds": seconds}
            cached = sum(cell.load_cached() is not None for cell in cells)
            plan.rows.append({**row, "bytes": size, "cells": len(cells), "cached": cached})
    plan.problems += [f"{name}: {reason}" for name, _, _, reason in context.summary.failures]
    needed = sum(row["bytes"] for row in plan.rows)
    if needed > plan.free_bytes:
        plan.problems.append(
            f"the embeddings need {needed / 1e9:.2f} GB, and {config.cache_dir} has {plan.free_bytes / 1e9:.2f} GB free. "
            "Choose another folder with --cache-dir."
        )
    return plan


def price(model: LoadedModel, plan: DatasetPlan, device: torch.device) -> tuple[float, int]:
    """Return the seconds and bytes that the missing embeddings take, by the first recording that can be read."""
    encode = PartEncoder(model, device)
    for index in plan.to_encode:
        try:
            for _ in range(2):  # the first time warms up
                started = time.perf_counter()
                recording = plan.dataset.recording(int(index), model.sampling)
                vectors = encode(transform(model.encoder, recording))
        except BadMedia:
            continue
        seconds = time.perf_counter() - started
        return seconds * len(plan.to_encode), vectors.numel() * vectors.element_size() * len(plan.to_encode)
    return 0.0, 0


def free_bytes(folder: Path) -> int:
    """Return the free space of the disk where a folder is, or would be made."""
    existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.is_dir())
    return shutil.disk_usage(existing).free
