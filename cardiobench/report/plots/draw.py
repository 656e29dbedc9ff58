"""Draw the figures of tasks, models and analyses in parallel, and list failures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd
from pandas.api.types import is_numeric_dtype

from cardiobench.core.console import Console
from cardiobench.core.errors import BadPredictions, MissingExtra, UnwritableOutput
from cardiobench.core.io import own_folder
from cardiobench.core.memory import collect_at_end
from cardiobench.core.workers import share_calls
from cardiobench.report.overview import find_task
from cardiobench.report.plots import analysis_caption, analysis_figures, is_side_by_side
from cardiobench.report.plots.figure import ReportFigure, SavedFigure, save_report_figure
from cardiobench.report.plots.job import FigureJob
from cardiobench.report.plots.kept import keep_figures, kept_figures, remove_unused, shown_digest
from cardiobench.report.plots.style import figure_style, shorten
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.collect import Collection, Problem, ResultEntry
from cardiobench.results.formatting import ordered
from cardiobench.results.predictions_file import load_predictions
from cardiobench.results.versions import data_version_key, describe_version

FIGURES = "figures"
"""Folder of the figures next to the page."""
JOBS_PER_PROCESS = 8
"""Minimum number of jobs for which a process is started: its imports take as long as four tasks."""
DAMAGED = (KeyError, ValueError, TypeError, AttributeError, IndexError)
"""Exceptions raised for tables of damaged files, reported in place of the figure."""


DrawnJob = tuple[tuple[SavedFigure, ...], tuple[Problem, ...]]
"""Figures and failures of a job."""


@dataclass
class ReportFigures:
    """Figures of a report.

    Attributes:
        figures: Mapping from kind and name of a job to its figures.
        problems: Failed figures with reasons.
        note: Reason for the absence of all figures.
    """

    figures: dict[tuple[str, str], tuple[SavedFigure, ...]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    note: str = ""

    def of(self, kind: str, name: str) -> tuple[SavedFigure, ...]:
        """Return the figures of a task, a model or an analysis."""
        return self.figures.get((kind, name), ())

    @property
    def files(self) -> list[Path]:
        """Distinct files of all figures."""
        return list(dict.fromkeys(file for figures in self.figures.values() for one in figures for file in one.files))


def draw_report(
    collection: Collection,
    out: Path,
    *,
    png: bool = False,
    processes: int | None = None,
    kinds: Sequence[str] = (),
    console: Console | None = None,
) -> ReportFigures:
    """Draw the figures of a collection and save them below `out/figures`.

    Args:
        collection: Results and analyses.
        out: Folder of the report.
        png: Whether to save PNG files as well.
        processes: Number of worker processes; None for the number of available cores, but fewer for few figures.
        kinds: Kinds of jobs to draw; empty for all.
        console: Console for progress; None to disable it.

    Returns:
        Figures; without matplotlib, none with a note on how to install it.

    Raises:
        UnwritableOutput: Writing to the folder fails.
    """
    jobs = [job for job in figure_jobs(collection) if not kinds or job.kind in kinds]
    folder = out / FIGURES
    try:
        with figure_style():
            pass
        own_folder(folder)
        done = _kept_or_drawn(jobs, folder, png, processes, console or Console(main=False))
    except MissingExtra as error:
        return ReportFigures(note=str(error))
    except OSError as error:
        raise UnwritableOutput(f"{folder} cannot be written: {error.strerror or error}") from error
    return ReportFigures(
        {(job.kind, job.name): figures for job, (figures, _) in zip(jobs, done, strict=True)},
        [problem for _, problems in done for problem in problems],
    )


def _kept_or_drawn(
    jobs: Sequence[FigureJob], folder: Path, png: bool, processes: int | None, console: Console
) -> list[DrawnJob]:
    """Return the figures of each job, reusing unchanged figures of an earlier report."""
    from joblib import cpu_count

    digests = [shown_digest(job, png) for job in jobs]
    kept = [kept_figures(folder, digest) for digest in digests]
    missing = [number for number, figures in enumerate(kept) if figures is None]
    count = min(processes or cpu_count(), len(missing) if processes else len(missing) // JOBS_PER_PROCESS) or 1
    drawn: dict[int, DrawnJob] = {}
    with console.progress("figures", len(missing), doing="drawing") as advance:
        for number, (figures, problems) in share_calls(_draw, [(n, jobs[n], folder, png) for n in missing], count):
            drawn[number] = figures, problems
            if not problems:
                keep_figures(figures, digests[number])
            advance(1)
    remove_unused()
    return [drawn.get(number, (figures or (), ())) for number, figures in enumerate(kept)]


def _draw(number: int, job: FigureJob, folder: Path, png: bool) -> tuple[int, DrawnJob]:
    with collect_at_end():
        return number, draw_job(job, folder, png)


def figure_jobs(collection: Collection) -> list[FigureJob]:
    """Return one job per task, model and analysis, and one per analysis that compares models."""
    by_part: dict[tuple[str, str], list[ResultEntry]] = {}
    for entry in collection.entries:
        for part in (("task", entry.result.task), ("model", entry.result.model["name"])):
            by_part.setdefault(part, []).append(entry)
    return [
        *(
            FigureJob(*part, tuple(entries), tasks={name: find_task(name) for name in {e.result.task for e in entries}})
            for part, entries in by_part.items()
        ),
        *(FigureJob("analysis", str(path), records=(record,)) for path, record in collection.analyses),
        *(FigureJob("side_by_side", name, records=records) for name, records in side_by_side(collection).items()),
    ]


def side_by_side(collection: Collection) -> dict[str, tuple[AnalysisResult, ...]]:
    """Group records of the same analysis, subject and data version from at least two models."""
    groups: dict[str, list[AnalysisResult]] = {}
    for _, record in collection.analyses:
        if is_side_by_side(record.protocol) and len(record.models) == 1:
            data = ", ".join(
                f"{facts['name']} {describe_version(data_version_key(facts))}" for facts in record.datasets
            )
            groups.setdefault(f"{record.protocol} of {record.subject}, {data}", []).append(record)
    return {name: tuple(records) for name, records in groups.items() if len(records) > 1}


def draw_job(job: FigureJob, folder: Path, png: bool) -> DrawnJob:
    """Draw and save the figures of one job, and return figures and failures."""
    entries = best_of_each_model(job.entries) if job.kind == "task" else view_entries(job.entries)
    predictions, problems = read_predictions(entries)
    saved = []
    with figure_style():
        try:
            for figure in _figures(job, predictions):
                saved.append(save_report_figure(figure, folder, job.stem, png=png or bool(job.records)))
        except DAMAGED as error:
            message = f"its figure cannot be drawn from its tables: {type(error).__name__} {error}"
            problems.append(Problem(job.name, "no picture", message, ", ".join({r.protocol for r in job.records})))
    return tuple(saved), tuple(problems)


def _figures(job: FigureJob, predictions: Sequence[tuple[ResultEntry, pd.DataFrame]]) -> Iterator[ReportFigure]:
    if job.kind == "task":
        yield from _task_figures(job, predictions)
    elif job.kind == "model":
        from cardiobench.report.plots.radar import radar_figure

        named = {f"{entry.result.task}, {entry.result.label}": frame for entry, frame in predictions}
        tasks = [task for entry, _ in predictions if (task := job.tasks[entry.result.task])]
        views = list(dict.fromkeys(view for task in tasks for view in task.classes))
        if radar := radar_figure(job.name, named, views):
            yield radar
    else:
        yield from _analysis_figures(job.records)


def _task_figures(job: FigureJob, predictions: Sequence[tuple[ResultEntry, pd.DataFrame]]) -> Iterator[ReportFigure]:
    from cardiobench.report.plots.classes import classes_figure
    from cardiobench.report.plots.groups import group_errors_figure, groups_figure
    from cardiobench.report.plots.predictions import agreement_figure, classification_figure
    from cardiobench.report.plots.scores import scores_figure

    results = [entry.result for entry in job.entries]
    yield scores_figure(results)
    if not predictions:
        return
    best, frame = next(((e, frame) for e, frame in predictions if not e.result.collapsed), predictions[0])
    task = job.tasks[job.name]
    if task and task.dense:
        units = frame.drop_duplicates("id").dropna(subset=["y_true", "y_pred"])
        if len(units):
            of_masks = replace(best.result, task=f"{task.dataset}/EF of masks", unit="%")
            yield agreement_figure(of_masks, units)
    elif best.result.per_class:
        yield classes_figure([entry.result for entry, _ in predictions], best.result)
    elif not task.classes if task else is_numeric_dtype(frame["y_true"]):
        yield agreement_figure(best.result, frame)
    elif task is None or not task.rules.empty_label:  # Multilabel predictions without probabilities have no figure.
        named = {_model_label(entry): own for entry, own in predictions}
        classes = task.classes if task else classes_of_unknown_task(list(named.values()))
        yield classification_figure(named, _model_label(best), job.name, classes)
    if best.result.groups:
        yield groups_figure([result for result in results if result.groups], best.result, task, frame)
    grouped = [(entry.result, own) for entry, own in predictions if entry.result.groups]
    if len(grouped) > 1 and task is not None and not (task.dense or task.classes):
        yield group_errors_figure(grouped, task)


def classes_of_unknown_task(frames: Sequence[pd.DataFrame]) -> list[str]:
    """Return the classes of an unknown task in the order of the stored probabilities.

    Without probabilities, no curve needs a positive class, and labels are in order of occurrence.

    Args:
        frames: Predictions with y_true, y_pred and, if available, p_<class> columns.
    """
    for frame in frames:
        if classes := [name.removeprefix("p_") for name in frame.columns if name.startswith("p_")]:
            return classes
    return list(dict.fromkeys(label for frame in frames for name in ("y_true", "y_pred") for label in frame[name]))


def _analysis_figures(records: Sequence[AnalysisResult]) -> Iterator[ReportFigure]:
    """Draw the figures of one analysis or of several models side by side, with all of its tables."""
    tables = records[0].tables
    if len(records) > 1:
        tables = {
            name: pd.concat([one.tables[name].assign(model=one.models[0]["name"]) for one in records])
            for name in tables
        }
    for name, figure in analysis_figures(records).items():
        yield ReportFigure(name, analysis_caption(records, name), figure, tables)


def best_of_each_model(entries: Sequence[ResultEntry]) -> list[ResultEntry]:
    """Return each model's best result with predictions, in rank order."""
    by_result = {id(entry.result): entry for entry in entries if entry.predictions}
    best: dict[str, ResultEntry] = {}
    for result in ordered([entry.result for entry in by_result.values()]):
        best.setdefault(result.model["name"], by_result[id(result)])
    return list(best.values())


def view_entries(entries: Sequence[ResultEntry]) -> list[ResultEntry]:
    """Return view recognition results with predictions, of all views or of the named ones."""
    tasks = {entry.result.task: find_task(entry.result.task) for entry in entries}
    views = {name for name, task in tasks.items() if task is not None and task.target == "view"}
    return [entry for entry in entries if entry.predictions and entry.result.task in views]


def read_predictions(entries: Sequence[ResultEntry]) -> tuple[list[tuple[ResultEntry, pd.DataFrame]], list[Problem]]:
    """Return entries with predictions, and a problem for each unreadable file."""
    frames, problems = [], []
    for entry in entries:
        if entry.predictions is None:
            continue
        try:
            frames.append((entry, load_predictions(entry.result, entry.predictions)))
        except BadPredictions as error:
            problems.append(Problem(str(entry.predictions), "no answers", str(error), entry.setting))
    return frames, problems


def _model_label(entry: ResultEntry) -> str:
    return f"{shorten(entry.result.model['name'], 40)}, {entry.result.label}"
