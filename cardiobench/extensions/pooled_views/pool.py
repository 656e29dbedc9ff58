"""Pool view recognition over datasets, because a dataset with a single view cannot be scored alone."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd

from cardiobench.core.io import sha256_of_json
from cardiobench.core.versions import component_version
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.spec import Task
from cardiobench.extensions.pooled_views.tasks import POOLED
from cardiobench.results.paths import predictions_path, result_path
from cardiobench.results.predictions_file import load_predictions, save_scored
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.cells.base import KEY_DIGITS
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.context import RunContext
from cardiobench.runner.references import data_warnings, limited_references
from cardiobench.scoring.metrics import narrow_metrics
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score

COMPONENT = "pooled views"
VERSION = 1

INCOMPLETE = ("missing_files", "absent_rows")


def pool_views(cells: Iterable[Cell], context: RunContext) -> None:
    """Score pooled view predictions for each protocol with at least two datasets.

    Real recordings are not mixed with generated ones, which are only scored if there are no real ones. In a job array,
    only the job that completes the run does this.
    """
    if context.config.shard:
        return
    by_label: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        if is_member(cell.task) and cell.path.is_file():
            by_label.setdefault(cell.label, {})[cell.dataset.spec.name] = cell
    for members in by_label.values():
        chosen = unmixed({name: cell.dataset for name, cell in members.items()})
        if len(chosen) > 1:
            context.summary.add(*_score({name: members[name] for name in chosen}))


def is_member(task: Task) -> bool:
    """Return whether the answers of a task can be pooled."""
    return (task.target, task.classes) == (POOLED.target, POOLED.classes)


def unmixed(datasets: Mapping[str, OpenDataset]) -> list[str]:
    """Return the names of the real datasets, or of all if there are none."""
    return [name for name, dataset in datasets.items() if not dataset.generated] or list(datasets)


def _score(cells: Mapping[str, Cell]) -> tuple[ScoreResult, list[Path]]:
    results = {name: ScoreResult.load(cell.path) for name, cell in cells.items()}
    frames = {name: load_predictions(results[name], predictions_path(cell.path)) for name, cell in cells.items()}
    first, (_, cell) = next(iter(results.values())), next(iter(cells.items()))
    missing = {name: _unanswered(cell, frames[name]) for name, cell in cells.items()}
    predictions = pool(frames, missing, sum(result.expected or 0 for result in results.values()))
    digest = sha256_of_json([result.dataset.get("digest") for result in results.values()])[:16]
    generated = any(result.generated for result in results.values())
    facts = {
        "name": "echo",
        "version": " + ".join(f"{name} {result.dataset.get('version')}" for name, result in results.items()),
        "digest": digest,
        "twin": any(result.dataset.get("twin") for result in results.values()),
        "generated": generated,
        "limit": first.dataset.get("limit"),
        **{name: sum(result.dataset.get(name, 0) for result in results.values()) for name in INCOMPLETE},
    }
    warnings = [
        f"{name}: {line}" for name, member in cells.items() for line in data_warnings(member.dataset, cell.config.limit)
    ]
    context = replace(
        cell.context(),
        dataset=facts,
        generated=generated,
        seen_in_pretraining=None,
        options=first.options,
        metrics=narrow_metrics(POOLED, cell.config.metrics),
        warnings=(*cell.model.warnings, *warnings),
    )
    result = score(predictions, predictions.frame.assign(split="test"), context)
    key = sha256_of_json([component_version(pool), *(member.key for member in cells.values())])[:KEY_DIGITS]
    result = replace(result, stamp={**result.stamp, **cell.provenance(), "key": key})
    return save_scored(result, predictions.frame, result_path(cell.folder, cell.label, POOLED.name))


def _unanswered(cell: Cell, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the test units of a dataset without predictions."""
    references = limited_references(cell.dataset, cell.task, cell.config.limit)
    return references[(references["split"] == "test") & ~references["id"].isin(frame["id"])]


def pool(frames: Mapping[str, pd.DataFrame], missing: Mapping[str, pd.DataFrame], expected: int) -> Predictions:
    """Concatenate predictions of several datasets, with the dataset name in ids and patients.

    Args:
        frames: Mapping from dataset to its table with the columns id, patient_id, y_true, y_pred and probabilities.
        missing: Mapping from dataset to id, patient_id and y_true of units without predictions.
        expected: Number of units over all datasets.
    """
    truth = ["id", "patient_id", "y_true"]
    rules = POOLED.rules
    optional = rules.optional_columns(POOLED)
    pooled = _concat(frames, [*truth, *rules.answer_columns(POOLED), *optional])
    pooled = pooled.fillna(dict.fromkeys(optional, 0.0)).dropna(axis="columns")
    unanswered = _concat(missing, truth)
    return Predictions(POOLED, pooled, expected, ", ".join(frames), missing=unanswered if len(unanswered) else None)


def _concat(frames: Mapping[str, pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    """Concatenate the available columns and prefix ids and patients with the dataset name."""
    parts = []
    for name, frame in frames.items():
        part = frame[[column for column in columns if column in frame]]
        parts.append(part.assign(id=name + "/" + part["id"], patient_id=name + "/" + part["patient_id"]))
    return pd.concat(parts, ignore_index=True)
