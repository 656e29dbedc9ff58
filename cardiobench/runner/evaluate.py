"""Evaluate cells: predict from embeddings, score and save."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadConfig
from cardiobench.core.libraries import as_text, library_warnings
from cardiobench.data.examine import remarked_sentence
from cardiobench.data.media.checks import CHECKS
from cardiobench.embeddings.store import Embeddings
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.base import PredictionProtocol, ProtocolOutput, TaskData, aggregate
from cardiobench.protocols.cut import cut_by_validation
from cardiobench.protocols.ensemble import EnsembleProtocol
from cardiobench.protocols.refits import digest_of_draws, digest_of_seeds
from cardiobench.results.refits import NO_TRAINING, TRAINING_PATIENTS, TRAINING_SEEDS
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.answered import Answered, save_answered
from cardiobench.runner.cell import NOTHING, Cell, FrameCell, TaskCell
from cardiobench.runner.compute import check_applies
from cardiobench.runner.context import RunContext
from cardiobench.runner.frame_answers import answer_frames
from cardiobench.runner.members import Members, Trained, answers_of, train_members
from cardiobench.runner.parallel import applicable, compute_apart, run_parallel, settle
from cardiobench.runner.plan import DatasetPlan
from cardiobench.runner.recent import RecentData
from cardiobench.runner.references import join_references
from cardiobench.runner.refitted import refitted_information
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.refits import ranking_scores, scores_of
from cardiobench.tasks.answers import RefitAnswers, stack_refits


def make_cells(
    model: LoadedModel,
    plan: DatasetPlan,
    protocols: Iterable[PredictionProtocol],
    unreadable: frozenset[str],
    context: RunContext,
) -> list[Cell]:
    """Return the cells of one model on one dataset."""
    return [
        Cell(model, protocol, context.config, task.name, (task,), plan, variant, unreadable)
        for task in plan.tasks
        for protocol in protocols
        for variant in protocol.variants(task)
    ]


def evaluate_cells(cells: Sequence[Cell], context: RunContext) -> None:
    """Evaluate all cells of one model, in parallel if stored embeddings suffice.

    All processes train ensemble members; the main process does the rest while the others wait.

    Args:
        cells: Cells of one model, equal on all processes.
        context: Run context.
    """
    if not cells:
        return
    trained = train_members(cells, context)
    if context.accelerator.is_main_process:
        _evaluate_here(cells, context, trained)
    context.accelerator.wait_for_everyone()


def _evaluate_here(cells: Sequence[Cell], context: RunContext, trained: Trained) -> None:
    kept, recent = applicable(cells, context), RecentData()
    in_parallel: dict[tuple[str, str], list[Cell]] = {}
    for cell in kept:
        if cell.protocol.runs_in_parallel:
            in_parallel.setdefault((cell.dataset.spec.name, cell.protocol.name), []).append(cell)
    others = [cell for cell in kept if not cell.protocol.runs_in_parallel]
    datasets = list(dict.fromkeys(cell.dataset.spec.name for cell in cells))
    name = f"{datasets[0] if len(datasets) == 1 else f'{len(datasets)} datasets'} with {cells[0].model.name}"
    # Cells in one worker message read recordings once, because each message has its own empty `RecentData`.
    outcomes = compute_apart(
        others, partial(evaluate_cell, recent=RecentData()), context, name, together=_task_name, done=trained
    )
    for n, cell in enumerate(others):
        settle(cell, outcomes.get(n), lambda one: evaluate_cell(one, recent, trained.get(one.key)), context)
    recent.clear()
    for group in in_parallel.values():
        run_parallel(group, evaluate_cell, context)


def _task_name(cell: Cell) -> str:
    """Return the task name, which groups cells that read the same recordings."""
    return cell.task.name


def evaluate_cell(
    cell: Cell | FrameCell, recent: RecentData | None = None, members: Members | None = None
) -> tuple[ScoreResult, list[Path]]:
    """Predict, score and save one cell.

    Args:
        cell: Cell of the result.
        recent: Recordings of the previous cell, of the same model and dataset.
        members: Trained ensemble members; None to train them here.

    Returns:
        Result and paths of the written files.

    Raises:
        NotApplicable: The protocol does not apply to the model.
    """
    started = time.perf_counter()
    check_applies(cell)
    if isinstance(cell, FrameCell):
        return save_answered(cell, answer_frames(cell, cell.protocol.predict(cell.plan, cell.variant)), started)
    protocol = cell.protocol
    data = (recent or RecentData()).of(cell)
    if members is not None and isinstance(protocol, EnsembleProtocol):
        started -= members.seconds
        output = protocol.combine(data, answers_of(members))
    else:
        output = protocol.predict(data, cell.model.encoder, cell.variant)
    output = cut_by_validation(data, under_conditions(cell, data, output))
    floors = protocol.floors(cell.rows, cell.task)
    return save_answered(cell, answer_recordings(cell, data, output, floors), started)


def under_conditions(cell: Cell, data: TaskData, output: ProtocolOutput) -> ProtocolOutput:
    """Return predictions of a cell under the conditions of the run."""
    for condition in cell.conditions:
        output = condition.module.apply(cell, data, output, condition.value)
    return output


def answer_recordings(
    cell: TaskCell, data: TaskData, output: ProtocolOutput, floors: Mapping[str, pd.DataFrame] = NOTHING
) -> Answered:
    """Join the predictions of a cell with their references.

    Args:
        cell: Cell of the result.
        data: Task data.
        output: Predictions of the test rows.
        floors: Protocol predictions that need no recordings (`PredictionProtocol.floors`).
    """
    config, protocol = cell.config, cell.protocol
    if output.out_of_fold and not protocol.out_of_fold:
        raise BadConfig(
            f"protocol '{protocol.name}' gave out-of-fold predictions and declares out_of_fold = False. "
            "Set out_of_fold = True on its class."
        )
    predictions, references = join_references(
        cell.dataset,
        cell.task,
        aggregate(data, output),
        model=cell.model.name,
        limit=config.limit,
        out_of_fold=protocol.out_of_fold,
    )
    predictions = predictions.with_floors(floors)
    trains = not isinstance(protocol, PredictionProtocol) or protocol.reads_training(cell.variant)
    refits = refit_answers(data, output, predictions.frame["id"]) if trains else RefitAnswers(NO_TRAINING)
    predictions = replace(predictions, refits=refits)
    seeds = seed_scores(predictions)
    context = cell.context({**output.details, **seeds})
    for_interval = tuple(aggregate(data, replace(output, values=one)) for one in output.interval_refits)
    interval_refits = scores_of(predictions.with_answers(one) for one in for_interval)
    warnings = (
        *context.warnings,
        *output.warnings,
        *library_warnings(data.embeddings.libraries),
        *remark_warnings(data.embeddings),
    )
    stamp = {
        "device": ", ".join(data.embeddings.devices) or "unknown",
        "libraries": as_text(data.embeddings.libraries),
    }
    if cell.protocol.seeds_in_interval:
        context = replace(context, seed_scores=seeds.get("seed_scores", ()))
    context = replace(
        context, refit_scores=interval_refits, warnings=warnings, cost=output.cost or data.embeddings.cost
    )
    predictions = replace(predictions, information=refitted_information(predictions, data, output, context.seed))
    validation = validation_answers(cell, data, output, references)
    return Answered(predictions, references, context, predictions.frame, stamp, validation)


def remark_warnings(embeddings: Embeddings) -> list[str]:
    """Return a sentence on the recordings that were remarked when they were encoded; none if there are none."""
    counts = Counter(check for found in embeddings.remarks.values() for check in found)
    order = {check.name: place for place, check in enumerate(CHECKS)}
    listed = dict(sorted(counts.items(), key=lambda one: order.get(one[0], len(order))))
    sentence = remarked_sentence(len(embeddings.remarks), embeddings.checked, listed)
    return [sentence] if sentence else []


def validation_answers(
    cell: TaskCell, data: TaskData, output: ProtocolOutput, references: pd.DataFrame
) -> Predictions | None:
    """Join validation predictions with their references; None if the protocol has none."""
    if output.validation is None:
        return None
    held = output.validation
    held_out = replace(output, indices=held.indices, values=held.values)
    answers = aggregate(data, held_out)
    source = cell.model.name
    joined = Predictions.join(references, answers, cell.task, source=source, split="validation", allow_missing=True)
    if output.refits:
        held_out = replace(held_out, refits=held.refits)
    else:
        held_out = replace(held_out, repeats=held.refits)
    return replace(joined, refits=refit_answers(data, held_out, joined.frame["id"]))


def refit_answers(data: TaskData, output: ProtocolOutput, ids: pd.Series) -> RefitAnswers | None:
    """Return the answers of the refits, or of the trainings with other seeds if there are no refits; None for fewer than two.

    Args:
        data: Task data.
        output: Output of the protocol.
        ids: Ids of the units to keep.
    """
    values = output.refits or output.repeats
    if len(values) < 2 or not (output.drawn or output.draws or output.seeds):
        return None
    cuts = output.refit_cuts or (output.cut,) * len(values)
    tables = [aggregate(data, replace(output, values=one, cut=cut)) for one, cut in zip(values, cuts, strict=True)]
    if output.refits:
        digest = output.draws or digest_of_draws(data, output.drawn)
        origin = TRAINING_PATIENTS, output.drawn_with, digest
    else:
        origin = TRAINING_SEEDS, output.seeds[0], digest_of_seeds(output.seeds)
    return stack_refits(tables, ids, data.task, *origin)


def seed_scores(predictions: Predictions) -> dict[str, Any]:
    """Return the ranking metric of each training run and their standard deviation."""
    varies = predictions.refits.varies if predictions.refits else NO_TRAINING
    scores = ranking_scores(predictions) if varies == TRAINING_SEEDS else []
    return {"seed_scores": scores, "seed_sd": float(np.std(scores, ddof=1))} if len(scores) > 1 else {}
