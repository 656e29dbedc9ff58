"""Score cross-validation with the classifier selected in the inner folds."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.core.io import sha256_of_json
from cardiobench.core.versions import component_version
from cardiobench.extensions.cross_validation.protocol import BEST, CrossValidation
from cardiobench.protocols.grid_search.search import median_and_iqr
from cardiobench.results.paths import predictions_path, result_path
from cardiobench.results.predictions_file import load_cached_score, load_predictions, save_scored
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.cells.base import KEY_DIGITS
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.context import RunContext
from cardiobench.runner.references import join_references
from cardiobench.scoring.score import score
from cardiobench.scoring.verdict import refits_of

COMPONENT = "best classifier"
VERSION = 2

FOLD_SCORES = ("f1", "f1_macro", "auroc")


def score_best_classifiers(cells: Iterable[Cell], context: RunContext) -> None:
    """Score each task and size with the classifier selected in the inner folds of each fold.

    Flat searches have no inner folds, so they have no such result.
    """
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        nested = isinstance(cell.protocol, CrossValidation) and cell.protocol.search == "nested"
        if nested and cell.path.is_file():
            groups.setdefault((cell.task.name, cell.variant.partition(".")[0]), []).append(cell)
    for (_, size), members in groups.items():
        if len(members) > 1:
            result, files = _load_or_score(size, members, context)
            context.summary.add(result, files, earlier=not files)


def _load_or_score(size: str, cells: list[Cell], context: RunContext) -> tuple[ScoreResult, list[Path]]:
    first = cells[0]
    # Keep the conditions of the run in the variant.
    variant = f"{size}.{BEST}{first.result_variant.removeprefix(first.variant)}"
    key = sha256_of_json([component_version(score_best_classifiers), *(cell.key for cell in cells)])[:KEY_DIGITS]
    path = result_path(first.folder, f"{first.protocol.name}.{variant}", first.subject)
    cached = None if context.config.overwrite else load_cached_score(path, key, first.recordings)
    if cached is not None:
        return cached.in_suite(context.config.suite, path), []
    results = {cell.variant.partition(".")[2]: ScoreResult.load(cell.path) for cell in cells}
    frames = [
        load_predictions(results[name], predictions_path(cell.path)) for name, cell in zip(results, cells, strict=True)
    ]
    chosen, details = choose_by_inner_folds({name: result.options for name, result in results.items()})
    predictions, references = join_references(
        first.dataset,
        first.task,
        take_folds(frames, fold_of_unit(first), chosen),
        model=first.model.name,
        limit=first.config.limit,
        out_of_fold=first.protocol.out_of_fold,
    )
    template = next(iter(results.values()))
    origin = first.context({"size": size, "records": template.options["records"], **details})
    # Embeddings and folds do not depend on the classifier.
    information = refits_of(template.verdict, template.score.n_patients)
    origin = replace(origin, variant=variant, cost=template.cost)
    result = score(replace(predictions, information=information), references, origin)
    result = replace(result, stamp={**template.stamp, **result.stamp, **first.provenance(), "key": key})
    return save_scored(result, predictions.frame, path)


def choose_by_inner_folds(options: Mapping[str, Mapping[str, Any]]) -> tuple[np.ndarray, dict[str, Any]]:
    """Select the classifier of each fold by its mean inner-fold F1; ties go to the first.

    Args:
        options: Mapping from classifier to result details with the scores of each fold.

    Returns:
        Index of the classifier of each fold, (folds,), and details of the combined result.
    """
    names = list(options)
    inner = np.array([one["f1_inner_folds"] for one in options.values()])
    chosen = inner.argmax(axis=0)
    details: dict[str, Any] = {"classifier": BEST, "candidates": names, "f1_inner_folds": inner.max(axis=0).tolist()}
    for key in FOLD_SCORES:
        table = np.array([one[f"{key}_folds"] for one in options.values()])
        values = np.take_along_axis(table, chosen[None], axis=0)[0]
        details[f"{key}_median"], details[f"{key}_iqr"] = median_and_iqr(values)
        details[f"{key}_folds"] = values.tolist()
    details["chosen"] = dict(Counter(names[number] for number in chosen.tolist()).most_common())
    return chosen, details


def fold_of_unit(cell: Cell) -> pd.Series:
    """Return the held-out fold of each unit, indexed by id; folds depend only on labels and patients."""
    protocol, task = cell.protocol, cell.task
    if not isinstance(protocol, CrossValidation):
        raise TypeError(f"{cell.label} has no folds")
    rows = cell.rows[~cell.rows["id"].isin(cell.unreadable)].reset_index(drop=True)
    rows = protocol.select_rows(rows, task, cell.variant)
    labels = pd.Categorical(rows[task.target], categories=task.classes).codes
    folds = np.empty(len(rows), dtype=np.int64)
    for number, (_, held_out) in enumerate(protocol.outer_folds(labels, rows["patient_id"].to_numpy())):
        folds[held_out] = number
    return pd.Series(folds, index=rows[task.unit_column].astype(str)).groupby(level=0).first()


def take_folds(frames: list[pd.DataFrame], fold: pd.Series, chosen: np.ndarray) -> pd.DataFrame:
    """Combine predictions from the classifier selected in each fold.

    Args:
        frames: Predictions of each classifier for the same units.
        fold: Fold of each unit, indexed by id.
        chosen: Index of the selected frame for each fold, (folds,).

    Returns:
        Table with the columns id, y_pred and probabilities.
    """
    source = pd.Series(chosen[fold.to_numpy()], index=fold.index)
    answers = pd.concat(
        [frame[source.loc[frame["id"]].to_numpy() == number] for number, frame in enumerate(frames)], ignore_index=True
    )
    return answers[["id", "y_pred", *(column for column in answers if column.startswith("p_"))]]
