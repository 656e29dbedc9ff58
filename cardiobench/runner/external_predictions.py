"""Predictions from elsewhere: the truth to give to others, and the scoring of what comes back."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from cardiobench.core import plugins
from cardiobench.core.config import ScoreConfig
from cardiobench.core.errors import BadData
from cardiobench.core.io import sha256_of_json
from cardiobench.data import catalog
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.open import open_dataset
from cardiobench.data.references import read_references
from cardiobench.data.spec import Task
from cardiobench.results.paths import result_path
from cardiobench.results.predictions_file import save_scored
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.context import ResultContext
from cardiobench.scoring.metrics import check_metrics, narrow_metrics
from cardiobench.scoring.predictions import Predictions, read_predictions
from cardiobench.scoring.score import score


def task_references(name: str, data_dir: Path | None) -> tuple[Task, pd.DataFrame, OpenDataset]:
    """Return a task, the references of all its units, and its dataset; the recordings themselves are not needed."""
    task = catalog.task(name)
    source = open_dataset(task.dataset, data_dir, need_media=False)
    return task, source.references(task), source


def score_file(config: ScoreConfig) -> tuple[ScoreResult, list[Path]]:
    """Score a file of predictions against the references of a task and save the result.

    Returns:
        The result, and the files that were written.

    Raises:
        BadPredictions: the file lacks test units, has others, or values that are none.
    """
    plugins.add_folder("hf_datasets", config.datasets_dir)
    task = catalog.task(config.task)
    check_metrics([task], config.metrics)
    if config.references:
        references = read_references(config.references, task)
        dataset = {"name": task.dataset, "references": config.references.name}
    else:
        source = open_dataset(task.dataset, config.data_dir, need_media=False, published=True)
        references = source.references(task)
        dataset = source.facts
    rows = read_predictions(config.predictions, task)
    predictions = Predictions.join(references, rows, task, source=config.predictions.name)
    context = ResultContext(
        dataset=dataset,
        generated=catalog.spec(task.dataset).generated or bool(dataset.get("twin")),
        metrics=narrow_metrics(task, config.metrics),
        resamples=config.resamples,
        seed=config.seed,
    )
    result = score(predictions, references, context)
    origin = sha256_of_json(str(config.predictions.resolve()))[:8]
    result = replace(result, stamp={**result.stamp, "origin": origin})
    return save_scored(result, predictions.frame, free_path(config, task, origin))


def free_path(config: ScoreConfig, task: Task, origin: str) -> Path:
    """Return where a file's result goes: under its name, with its origin where a file of that name from elsewhere has a result.

    Args:
        config: of the scoring.
        task: that was predicted.
        origin: digest of the file's path.
    """
    name = config.predictions.stem.strip(".") or "predictions"
    path = result_path(config.output_dir / "predictions", name, task.name)
    try:
        other = path.is_file() and ScoreResult.load(path).stamp.get("origin", origin) != origin
    except BadData:
        other = False  # half-finished or damaged: written anew
    return result_path(config.output_dir / "predictions", f"{name}-{origin}", task.name) if other else path
