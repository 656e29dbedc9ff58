"""Predictions from elsewhere: the truth to give to others, and the scoring of what comes back."""

from pathlib import Path

from cardiobench.config import RunConfig
from cardiobench.data import catalog
from cardiobench.data.source import open_source
from cardiobench.report.console import Console
from cardiobench.report.result import Result, predictions_path
from cardiobench.scoring.predictions import Predictions, read_predictions
from cardiobench.scoring.references import read_references, write_references
from cardiobench.scoring.score import score


def write_task_references(name: str, data_dir: Path | None, out: Path) -> None:
    """Write id, patient, split, truth and groups of every unit of a task as CSV; the recordings themselves are not needed."""
    task = catalog.task(name)
    source = open_source(task.dataset, data_dir, need_media=False)
    table = source.references(task)
    write_references(table, out)
    Console().references(task, table, source, out)


def score_file(predictions: Path, name: str, references: Path | None, config: RunConfig) -> Result:
    """Score a file of predictions against the truth of a task, print the table and save the result.

    Raises:
        BadPredictions: the file lacks test units, has others, or values that are none.
    """
    task = catalog.task(name)
    if references:
        truth, dataset = read_references(references, task), {"name": task.dataset, "references": references.name}
    else:
        source = open_source(task.dataset, config.data_dir, need_media=False)
        truth = source.references(task)
        dataset = {"name": task.dataset, "version": source.spec.version, "digest": source.table.digest}
    joined = Predictions.join(truth, read_predictions(predictions, task), task, source=predictions.name)
    result = score(joined, truth, resamples=config.resamples, seed=config.seed, dataset=dataset)
    path = config.output_dir / "predictions" / predictions.stem / f"{task.name.replace('/', '__')}.json"
    files = [joined.save(predictions_path(path)), result.save(path)]
    screen = Console()
    screen.results([result])
    for file in files:
        screen.say(f"wrote {file}")
    return result
