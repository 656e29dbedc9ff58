"""Predictions from elsewhere: the truth to give to others, and the scoring of what comes back."""

from pathlib import Path

import pandas as pd

from cardiobench.core.config import ScoreConfig
from cardiobench.data import catalog
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.open import open_dataset
from cardiobench.data.references import read_references
from cardiobench.data.spec import Task
from cardiobench.results.predictions_file import save_scored
from cardiobench.results.score_result import ScoreResult
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
    task = catalog.task(config.task)
    if config.references:
        references = read_references(config.references, task)
        dataset = {"name": task.dataset, "references": config.references.name}
    else:
        source = open_dataset(task.dataset, config.data_dir, need_media=False)
        references = source.references(task)
        dataset = {"name": task.dataset, "version": source.spec.version, "digest": source.table.digest}
    rows = read_predictions(config.predictions, task)
    predictions = Predictions.join(references, rows, task, source=config.predictions.name)
    result = score(predictions, references, resamples=config.resamples, seed=config.seed, dataset=dataset)
    path = config.output_dir / "predictions" / config.predictions.stem / f"{task.name.replace('/', '__')}.json"
    return save_scored(result, predictions.frame, path)
