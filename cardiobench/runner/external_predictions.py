"""Export references and score external predictions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cardiobench.core import plugins
from cardiobench.core.config import ScoreConfig
from cardiobench.core.errors import BadData, MissingData
from cardiobench.core.io import sha256_of_json
from cardiobench.data import catalog
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.open import open_dataset
from cardiobench.data.references_file import References, read_references
from cardiobench.data.spec import Task
from cardiobench.report.contests import PredictionsFile
from cardiobench.results.context import ResultContext
from cardiobench.results.paths import result_path
from cardiobench.results.predictions_file import save_scored
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.external import join_external, renewal_command
from cardiobench.scoring.external_model import describe_model
from cardiobench.scoring.metrics import check_metrics, narrow_metrics
from cardiobench.scoring.score import score


def task_references(name: str, data_dir: Path | None) -> tuple[References, OpenDataset]:
    """Return the references and dataset of a task; recordings are not needed.

    Raises:
        UnknownName: There is no such task, or it names an unknown metric.
        MissingData: The tables are missing, or no unit has a label.
    """
    task = catalog.task(name)
    check_metrics([task], ())
    dataset = open_dataset(task.dataset, data_dir, need_media=False)
    references = References.of(dataset, task)
    if references.table.empty:
        raise MissingData(
            f"none of the {len(references.unlabelled)} units in {dataset.raw} has a label of {task.name}. The labels may be in a file of "
            f"the release that is missing here; hf_datasets/{task.dataset}/README.md says which."
        )
    return references, dataset


def score_file(config: ScoreConfig) -> tuple[ScoreResult, list[Path]]:
    """Score a prediction file with the references of a task and save the result.

    Returns:
        Result and paths of the written files.

    Raises:
        BadPredictions: Test units are missing or unknown, or values are invalid.
    """
    plugins.add_folder("hf_datasets", config.datasets_dir)
    task = catalog.task(config.task)
    check_metrics([task], config.metrics)
    about_model = describe_model(
        task,
        model_name=config.model_name,
        protocol_name=config.protocol_name,
        seen_in_pretraining=config.seen_in_pretraining,
    )
    references, facts = _references(task, config.references, config.data_dir)
    renewal = renewal_command(task, config.references or "", config.data_dir)
    predictions = join_external(config.predictions, references, renewal=renewal, allow_missing=config.allow_missing)
    context = ResultContext(
        dataset=facts,
        generated=references.generated,
        metrics=narrow_metrics(task, config.metrics),
        resamples=config.resamples,
        seed=config.seed,
        **about_model,
    )
    result = score(predictions, references.table, context)
    origin = sha256_of_json(str(config.predictions.resolve()))[:8]
    result = replace(result, stamp={**result.stamp, "origin": origin})
    return save_scored(result, predictions.frame, free_path(config, task, origin))


def read_files(
    paths: Sequence[Path],
    task_name: str,
    references: Path | None = None,
    data_dir: Path | None = None,
    *,
    allow_missing: bool = False,
) -> list[PredictionsFile]:
    """Read prediction files for a comparison.

    Args:
        paths: CSV or Parquet files.
        task_name: Task that all files answer.
        references: Path of a reference file; None to use the data.
        data_dir: Folder with raw data, if no references are given.
        allow_missing: Whether units may lack predictions.

    Raises:
        BadPredictions: Test units are missing or unknown, or values are invalid.
    """
    task = catalog.task(task_name)
    truth, facts = _references(task, references, data_dir)
    renewal = renewal_command(task, references or "", data_dir)
    twice = {name for name, count in Counter(path.name for path in paths).items() if count > 1}
    return [
        PredictionsFile(
            str(path) if path.name in twice else path.name,
            join_external(path, truth, renewal=renewal, allow_missing=allow_missing),
            facts,
            truth.generated,
        )
        for path in dict.fromkeys(paths)
    ]


def _references(task: Task, references: Path | None, data_dir: Path | None) -> tuple[References, dict[str, Any]]:
    """Return references from a file or from data, and dataset facts for the result."""
    if references is not None:
        read = read_references(references, task)
        named = {} if read.release else {"references": references.name}
        return read, {**read.facts, **named}
    dataset = open_dataset(task.dataset, data_dir, need_media=False, published=True)
    of_data = References.of(dataset, task)
    # The digest includes file sizes, so it is not meaningful if files are missing.
    return of_data, of_data.facts if dataset.table.missing else dataset.facts


def free_path(config: ScoreConfig, task: Task, origin: str) -> Path:
    """Return the path of a file's result, with its origin if another file of the same name has a result.

    Args:
        config: Scoring settings.
        task: Predicted task.
        origin: Digest of the path of the file.
    """
    name = config.predictions.stem.strip(".") or "predictions"
    if config.protocol_name:
        name = f"{name}.{config.protocol_name}"
    path = result_path(config.output_dir / "predictions", name, task.name)
    try:
        other = path.is_file() and ScoreResult.load(path).stamp.get("origin", origin) != origin
    except BadData:
        other = False  # The result is incomplete or damaged, so overwrite it.
    return result_path(config.output_dir / "predictions", f"{name}-{origin}", task.name) if other else path
