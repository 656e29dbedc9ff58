"""Estimate a run without writing files: plan, encoding time, disk space and missing data."""

import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.core.errors import BadData, BadMedia
from cardiobench.core.io import no_folder
from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.embeddings.extract import SHARD, EncodeJob, PartEncoder, prepare, run_code_of
from cardiobench.models.base import LoadedModel
from cardiobench.models.device import name_of
from cardiobench.protocols.analysis import AnalysisProtocol, Perturbation
from cardiobench.protocols.base import PredictionProtocol
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.analyze import plan_subjects, prices
from cardiobench.runner.cells.analysis import AnalysisCell
from cardiobench.runner.cells.base import TaskCell
from cardiobench.runner.cells.frames import FrameCell
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.compute import applies
from cardiobench.runner.context import RunContext, RunSummary
from cardiobench.runner.encode import EncodeInput, dataset_inputs
from cardiobench.runner.evaluate import make_cells
from cardiobench.runner.given_embeddings import read_given
from cardiobench.runner.known import check_reuse, without_result
from cardiobench.runner.plan import AbsentPlan, DatasetPlan, plan_model
from cardiobench.runner.processes import start_processes
from cardiobench.runner.run import (
    Request,
    announce_derived,
    load_models,
    planned_cells,
    print_data,
    resolve,
    unanswered,
)

MORE = 8  # Recordings added to a shard to measure its growth.


@dataclass
class DryRun:
    """Outcome of a dry run.

    Attributes:
        rows: Estimates per model and dataset: number of inputs to encode (recordings, labelled frames and perturbed
            recordings), seconds, bytes, and numbers of prediction cells and cached ones.
        holes: Model, task and protocol of each prediction cell without a result.
        free_bytes: Free bytes on the disk with the embeddings.
        absent_holes: Model, task and protocol of each prediction cell without a result whose data is not here.
        prices: Lines about the cost of analyses.
        absent: Mapping from dataset to the reason why its data is missing.
        problems: Reasons why the run would be incomplete.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    holes: list[dict[str, str]] = field(default_factory=list)
    absent_holes: list[dict[str, str]] = field(default_factory=list)
    free_bytes: int = 0
    prices: list[str] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """Exit code: 0 if the run would complete, 1 if part of it would fail."""
        return 1 if self.problems else 0


def dry_run(config: RunConfig, console: Console, *, count_absent: bool = False) -> DryRun:
    """Plan a run and estimate its cost by encoding one recording per input.

    Args:
        config: Run settings.
        console: Console for the data and the plan.
        count_absent: Whether to list results that cannot be computed because their data is not here.

    Raises:
        CardioBenchError: The request is invalid.
    """
    if blocked := no_folder(config.output_dir):
        raise type(blocked)(blocked.args[0], "Choose another folder with --output-dir.")
    given = read_given(config)
    request = resolve(replace(config, models=(*config.models, *given)), given)
    config = request.config
    check_reuse(config)
    context = RunContext(config, start_processes(config.device), RunSummary(), console, request.makers)
    print_data(request, console)
    announce_derived(request, console)
    plan = DryRun(free_bytes=free_bytes(config.cache_dir), absent=dict(request.absent))
    priced: dict[Path, set[str]] = {}
    answered: set[tuple[str, str]] = set()
    for model, protocols, datasets in load_models(request, context, without_data=count_absent):
        names = [protocol.name for protocol in protocols]
        predicting = [protocol for protocol in protocols if isinstance(protocol, PredictionProtocol)]
        plans = plan_model(model, request.tasks, datasets, names, context)
        rows: dict[str, dict[str, Any]] = {}
        known: list[ScoreResult] = []
        done: list[str] = []
        for name, dataset in plans.items():
            cells = make_cells(model, dataset, predicting, frozenset(), context)
            fitting = [cell for cell in cells if not applies(cell)]  # Only these have a key: others may lack a metric.
            answered |= _answers(model, fitting)
            known += [result for cell in fitting if (result := cell.load_cached())]
            holes = without_result(fitting, context)
            plan.holes += map(_hole, holes)
            done += [name] * (not holes)
            counts = {"cells": len(cells), "cached": len(fitting) - len(holes)}
            rows[name] = {"model": model.name, "dataset": name, "to_encode": 0, "seconds": 0.0, "bytes": 0, **counts}
        planned = list(planned_cells(model, request.tasks, datasets, protocols, context))
        analyzing = [protocol for protocol in protocols if isinstance(protocol, AnalysisProtocol)]
        subjects = list(plan_subjects(model, analyzing, plans, context))
        answered |= _answers(model, [cell for cell in planned if not applies(cell)])
        answered |= {(model.name, task.name) for _, _, members, _ in subjects for task in members}
        inputs = () if model.vectors else model_inputs(model, planned, subjects, plans, config.seed)
        for name, one in inputs:
            if config.reuse and name in done and not analyzing:  # The run does not encode this dataset.
                continue
            for key, value in price(
                one, priced.setdefault(one.store.folder, set()), context.accelerator.device
            ).items():
                rows[name][key] += value
        plan.rows += rows.values()
        analyses = analysis_cells(model, subjects, plans, config)
        plan.prices += prices([cell for cell in analyses if not applies(cell)], known)
        if count_absent:
            absent = absent_cells(model, predicting, request, context)
            answered |= _answers(model, absent)
            plan.absent_holes += [_hole(cell) for cell in absent if not _has_result(cell)]
    plan.problems += [f"{name}: {reason}" for name, _, _, reason in context.summary.failures]
    plan.problems += filter(None, [unanswered(request, answered, context.summary)])
    needed = sum(row["bytes"] for row in plan.rows)
    if needed > plan.free_bytes:
        plan.problems.append(
            f"the embeddings need {needed / 1e9:.2f} GB, and {config.cache_dir} has {plan.free_bytes / 1e9:.2f} GB free. "
            "Choose another folder with --cache-dir."
        )
    return plan


def _hole(cell: TaskCell) -> dict[str, str]:
    return {"model": cell.model.name, "task": cell.subject, "protocol": cell.label}


def _answers(model: LoadedModel, cells: Iterable[TaskCell]) -> set[tuple[str, str]]:
    return {(model.name, cell.subject) for cell in cells}


def absent_cells(
    model: LoadedModel, protocols: Sequence[PredictionProtocol], request: Request, context: RunContext
) -> list[Cell]:
    """Return the cells of a model that apply to tasks whose data is not here."""
    cells: list[Cell] = []
    for name, reason in request.absent.items():
        if catalog.spec(name).modality in model.modalities:
            tasks = tuple(task for task in request.tasks if task.dataset == name)
            cells += make_cells(model, AbsentPlan(tasks, reason), protocols, frozenset(), context)
    return [cell for cell in cells if not applies(cell)]


def _has_result(cell: Cell) -> bool:
    """Return whether a cell has a result of the current rules, whose key is not compared without its data."""
    try:
        return not ScoreResult.load(cell.path).outdated
    except BadData:
        return False


Subject = tuple[AnalysisProtocol, str, tuple[Task, ...], dict[str, dict[Perturbation, DatasetPlan]]]
"""Analysis of one model, as yielded by `plan_subjects`."""


def analysis_cells(
    model: LoadedModel, subjects: Iterable[Subject], plans: Mapping[str, DatasetPlan], config: RunConfig
) -> list[AnalysisCell]:
    """Return a model's analyses without perturbations, assuming that all recordings are readable."""
    return [
        AnalysisCell(
            model, protocol, config, subject, members, plans, {}, {one.dataset: frozenset() for one in members}
        )
        for protocol, subject, members, changed in subjects
        if not changed
    ]


def model_inputs(
    model: LoadedModel,
    planned: Iterable[FrameCell],
    subjects: Iterable[Subject],
    plans: Mapping[str, DatasetPlan],
    seed: int,
) -> Iterator[tuple[str, EncodeInput]]:
    """Yield (dataset, input) for all inputs that `run_model` encodes, in order.

    Nothing is encoded in between, so inputs may overlap.
    """
    for name, plan in plans.items():
        yield from ((name, one) for one in dataset_inputs(model, {None: plan}, seed))
    for cell in planned:
        yield from ((cell.task.dataset, one.encode_input()) for one in cell.plan.plans.values())
    for _, _, _, perturbed in subjects:
        for name, changed in perturbed.items():
            yield from ((name, one) for one in dataset_inputs(model, changed, seed, plans[name]))


def price(wanted: EncodeInput, priced: set[str], device: torch.device) -> dict[str, float]:
    """Estimate the cost of missing vectors from the first readable recording of an input.

    Args:
        wanted: Input to estimate.
        priced: Ids counted for earlier inputs of the same store; updated in place.
        device: Device of the network.

    Returns:
        Mapping with `to_encode` (number of recordings, frames and perturbed recordings to encode), `seconds`, and
        `bytes` (including vectors that are only reordered).
    """
    ids = wanted.source.frame["id"].to_numpy()
    missing = [int(number) for number in wanted.missing if ids[number] not in priced]
    priced.update(ids[missing])
    encode = PartEncoder(wanted.model, device)
    to_encode = len(missing) if wanted.clean is None else 0
    for number in missing:
        try:
            with run_code_of(wanted.model):
                for _ in range(2):  # The first call is a warm-up.
                    started = time.perf_counter()
                    vectors = encode(prepare(wanted.model, wanted.source, number)).flatten(0, -2)
        except BadMedia:
            continue
        seconds = time.perf_counter() - started
        job = EncodeJob(wanted.source, number, wanted.store)
        size = stored_bytes(job, vectors.numpy(), len(missing), name_of(device))
        return {"to_encode": to_encode, "seconds": seconds * to_encode, "bytes": size}
    return {"to_encode": to_encode, "seconds": 0.0, "bytes": 0}


def stored_bytes(job: EncodeJob, vectors: np.ndarray, count: int, device: str) -> int:
    """Return the bytes of shards with `count` recordings like the one of a job.

    Apart from padding, each recording adds the same number of bytes.
    """

    def shard(records: int) -> int:
        repeated = [job.id] * records, [job.fingerprint] * records, [vectors] * records
        return len(job.store.shard(*repeated, hints=[job.hint] * records, device=device))

    one, several = shard(1), shard(1 + MORE)
    each = (several - one) / MORE
    return round(count * each + -(-count // SHARD) * (one - each))


def free_bytes(folder: Path) -> int:
    """Return the free disk space at a folder, which need not exist."""
    existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.is_dir())
    return shutil.disk_usage(existing).free
