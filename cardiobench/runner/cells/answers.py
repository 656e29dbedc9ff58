"""Join the predictions of a cell with their references, score, stamp and save them."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadConfig
from cardiobench.core.libraries import as_text, library_warnings
from cardiobench.data.examine import remarked_sentence
from cardiobench.data.media.checks import CHECKS
from cardiobench.embeddings.vectors import Embeddings
from cardiobench.protocols.base import PredictionProtocol, ProtocolOutput, TaskData, Units, aggregate
from cardiobench.protocols.refits import digest_of_draws, digest_of_seeds
from cardiobench.results.context import ResultContext
from cardiobench.results.predictions_file import save_scored
from cardiobench.results.refits import NO_TRAINING, TRAINING_PATIENTS, TRAINING_SEEDS
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.cells.base import NOTHING, TaskCell
from cardiobench.runner.references import join_references
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.refits import ranking_scores, scores_of
from cardiobench.scoring.score import score
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.information import Information
from cardiobench.stats.permuted_labels import refitted_test
from cardiobench.tasks.answers import JoinedAnswers, RefitAnswers, TableAnswers, stack_refits


@dataclass(frozen=True)
class Answered:
    """Predictions of a cell that are ready to be scored.

    Attributes:
        answers: Predictions for test units or their labelled frames.
        references: References of all splits.
        context: Origin and settings of the score.
        table: Table of predictions to save with the result.
        stamp: Further facts for the stamp, such as device and libraries.
        validation: Predictions for validation units, saved but not scored; None if there are none.
    """

    answers: JoinedAnswers
    references: pd.DataFrame
    context: ResultContext
    table: pd.DataFrame
    stamp: Mapping[str, Any]
    validation: TableAnswers | None = None


def save_answered(cell: TaskCell, answered: Answered, started: float) -> tuple[ScoreResult, list[Path]]:
    """Score and save the predictions of a cell.

    Args:
        cell: Cell of the result.
        answered: Predictions with references.
        started: Value of `time.perf_counter()` at the start of the cell.

    Returns:
        Result and paths of the written files.
    """
    result = score(answered.answers, answered.references, answered.context)
    stamp = {
        **cell.provenance(),
        "embeddings": cell.plan.store.key,
        **answered.stamp,
        "seconds": round(time.perf_counter() - started, 3),
    }
    result = replace(result, stamp={**result.stamp, **stamp})
    validation = answered.validation
    return save_scored(
        result,
        answered.table,
        cell.path,
        None if validation is None else validation.frame,
        refits=_columns(answered.answers),
        validation_refits=_columns(validation),
    )


def _columns(answers: JoinedAnswers | None) -> Mapping[str, np.ndarray]:
    """Return the answers of refits to save next to a table."""
    refits = None if answers is None else answers.refits
    return refits.columns if refits else {}


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


def refitted_information(
    predictions: TableAnswers, data: TaskData, output: ProtocolOutput, seed: int
) -> Information | None:
    """Return the test that permutes labels and refits all folds, or None if permuting fixed answers is sufficient.

    The latter applies to predictions that are not out of fold, to other than binary tasks, and to folds that share
    patients.

    Args:
        predictions: Predictions joined with references.
        data: Task data.
        output: Output of the protocol.
        seed: Random seed of the permutations.
    """
    if output.folds is None or not data.task.rules.two_classes:
        return None
    units, clusters = Units.of(data, output.indices), Clusters.of(predictions.patients)
    fold_of_unit = np.empty(len(units.ids), dtype=np.int64)
    fold_of_unit[units.of_recording] = output.folds
    place = pd.Index(units.ids.astype(str)).get_indexer(predictions.frame["id"])
    folds = fold_of_unit[place]
    if len(np.unique(np.stack([clusters.of_row, folds], axis=1), axis=0)) > clusters.count:
        return None
    features = units.mean(data.features[output.indices])[place]
    return refitted_test(features, predictions.sample().y_true, folds, clusters, seed=seed)
