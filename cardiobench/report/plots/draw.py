"""Every picture of a report: what has to be drawn, drawn side by side in processes, and what could not be drawn."""

import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

import pandas as pd

from cardiobench.core.errors import BadPredictions
from cardiobench.report.overview import find_task
from cardiobench.report.plots.style import Picture, SavedFigure, embedded, inline, shorten, style, write
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.collect import Entry, Problem
from cardiobench.results.formatting import ordered
from cardiobench.results.predictions_file import load_predictions
from cardiobench.results.published import published_scores

MOST_INLINE = 120_000  # characters of a figure's SVG; a larger one stands in the page as an image
FEW = 6  # jobs that are not worth starting processes for
BROKEN = (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, ZeroDivisionError)
"""What reading or drawing a damaged file comes to; it is told beside the picture's place."""


@dataclass(frozen=True)
class Job:
    """The pictures of one task, one model or one record.

    Attributes:
        about: the task's or the model's name, or the place of the record.
        stem: of the file names.
        folder: of the files.
        entries: of a task or model.
        record: of a study.
        beside: records of one study of several models.
        kind: task, model, record or beside.
        png: as PNG too.
    """

    about: str
    stem: str
    folder: Path
    kind: str
    entries: tuple[Entry, ...] = ()
    record: AnalysisResult | None = None
    beside: tuple[AnalysisResult, ...] = ()
    png: bool = False

    @property
    def place(self) -> Path:
        """Beside which its files are written."""
        return self.folder / f"{self.stem}.json"


@dataclass(frozen=True)
class Done:
    """What a job came to."""

    drawn: tuple[SavedFigure, ...]
    problems: tuple[Problem, ...] = ()


def draw_all(jobs: Sequence[Job], processes: int | None = None) -> list[Done]:
    """Draw every job, in order; as many at once as there are processors.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    with style():
        pass
    count = min(processes or os.cpu_count() or 1, len(jobs))
    if count <= 1 or len(jobs) <= FEW:
        return [draw(job) for job in jobs]
    if sys.platform == "linux":
        import_what_draws(jobs)
        # A fork has imported everything already. It is not made beside threads, whose locks it would keep for ever.
        if threading.active_count() == 1:
            with ProcessPoolExecutor(count, get_context("fork")) as pool:
                return list(pool.map(draw, jobs, chunksize=2))
    from joblib import Parallel, delayed

    return Parallel(n_jobs=count, batch_size=4)(delayed(draw)(job) for job in jobs)


def import_what_draws(jobs: Sequence[Job]) -> None:
    """What every process needs, so that each one need not import it again."""
    for module in ("predictions", "forest", "groups", "text", "radar"):
        import_module(f"cardiobench.report.plots.{module}")
    for job in jobs:
        if job.kind == "task":
            find_task(job.about)


def draw(job: Job) -> Done:
    """The pictures of one job, saved."""
    makers = {"task": _of_task, "model": _of_model, "record": _of_record, "beside": _of_records}
    with style():
        return makers[job.kind](job)


def _of_task(job: Job) -> Done:
    from cardiobench.report.plots.forest import forest

    first = job.entries[0].result
    printed = [row for row in published_scores(job.about) if row.metric == first.metric]
    drawn, problems = [write(forest(job.entries, printed), job.folder, job.stem, job.png)], []
    frames, unread = read_answers(best_of_each_model(job.entries))
    problems += unread
    if frames:
        try:
            drawn += [write(picture, job.folder, job.stem, job.png) for picture in _of_answers(job, frames)]
        except BROKEN as error:
            problems.append(Problem(job.about, "no picture", f"its answers cannot be drawn: {error}"))
    return Done(tuple(drawn), tuple(problems))


def _of_answers(job: Job, frames: Sequence[tuple[Entry, pd.DataFrame]]) -> list[Picture]:
    from cardiobench.report.plots.groups import groups
    from cardiobench.report.plots.predictions import agreement, classification

    best, frame = next(((entry, frame) for entry, frame in frames if not entry.result.collapsed), frames[0])
    task = find_task(job.about)
    regression = task.kind == "regression" if task else not any(c.startswith("p_") for c in frame)
    if regression:
        made = [agreement(best.result, frame)]
    else:
        made = [classification({_name(entry): own for entry, own in frames}, _name(best), job.about)]
    grouped = [entry.result for entry in job.entries if entry.result.groups]
    return made + ([groups(grouped, best.result, task, frame)] if best.result.groups else [])


def best_of_each_model(entries: Sequence[Entry]) -> list[Entry]:
    """Each model under its best protocol, the best model first; of entries with answers only."""
    by_result = {id(entry.result): entry for entry in entries if entry.predictions}
    chosen: dict[str, Entry] = {}
    for result in ordered([entry.result for entry in by_result.values()]):
        chosen.setdefault(result.model["name"], by_result[id(result)])
    return list(chosen.values())


def _name(entry: Entry) -> str:
    return f"{shorten(entry.result.model['name'], 40)}, {entry.result.label}"


def read_answers(entries: Sequence[Entry]) -> tuple[list[tuple[Entry, pd.DataFrame]], list[Problem]]:
    """Entries with their predictions, where they are here and can be read."""
    frames, problems = [], []
    for entry in entries:
        try:
            frames.append((entry, load_predictions(entry.result, entry.predictions)))
        except BadPredictions as error:
            problems.append(Problem(str(entry.predictions), "no answers", str(error), entry.setting))
    return frames, problems


def _of_model(job: Job) -> Done:
    from cardiobench.report.plots.radar import radar

    views = [entry for entry in job.entries if entry.predictions and entry.result.task.endswith("/view")]
    frames, problems = read_answers(views)
    named = {f"{entry.result.task}, {entry.result.label}": frame for entry, frame in frames}
    picture = radar(job.about, named)
    return Done((write(picture, job.folder, job.stem, job.png),) if picture else (), tuple(problems))


def _of_record(job: Job) -> Done:
    from cardiobench.report.plots import figures_of

    record = job.record
    caption = f"{record.subject}, {_models([record])}{_n([record])}."
    return _of_study(job, record, figures_of(record, job.place), caption, record.tables)


def _of_records(job: Job) -> Done:
    from cardiobench.report.plots import figures_beside
    from cardiobench.report.plots.frame_similarity import side_by_side

    first = job.beside[0]
    caption = f"{first.subject}, {_models(job.beside)}, in one scale of colours{_n(job.beside)}."
    try:
        tables = {"side_by_side": side_by_side(job.beside)}
    except BROKEN as error:
        return Done((), (_undrawn(job, first, error),))
    return _of_study(job, first, figures_beside(job.beside, job.place), caption, tables)


def _of_study(
    job: Job,
    record: AnalysisResult,
    figures: Iterator[tuple[str, str, list[Path]]],
    caption: str,
    tables: Mapping[str, pd.DataFrame],
) -> Done:
    """Its figures with the tables behind them, as far as they can be drawn."""
    drawn = []
    try:
        for name, svg, files in figures:
            small = inline(svg, f"{job.stem}.{name}")
            shown = small if len(small) < MOST_INLINE else embedded(files[0].read_bytes())
            title = f"{record.protocol}, {name}: ".replace("_", " ")
            drawn.append(SavedFigure(name, title + caption, shown, tuple(files)))
    except BROKEN as error:
        return Done(tuple(drawn), (_undrawn(job, record, error),))
    behind = [_table(job, name, table) for name, table in tables.items()] if drawn else []
    return Done(tuple(SavedFigure(d.name, d.caption, d.svg, (*d.files, *behind)) for d in drawn))


def _undrawn(job: Job, record: AnalysisResult, error: Exception) -> Problem:
    what = f"its figure cannot be drawn from its tables: {type(error).__name__} {error}"
    return Problem(job.about, "no picture", what, record.protocol)


def _table(job: Job, name: str, table: pd.DataFrame) -> Path:
    path = job.folder / f"{job.stem}.{name}.csv"
    table.to_csv(path, index=False)
    return path


def _models(records: Sequence[AnalysisResult]) -> str:
    return ", ".join(shorten(str(model.get("name", "?")), 40) for record in records for model in record.models)


def _n(records: Sequence[AnalysisResult]) -> str:
    counts = sorted({found.n for record in records for found in record.values.values() if found.n})
    if not counts:
        rows = max((len(table) for record in records for table in record.tables.values()), default=0)
        return f", n = {rows} rows of its table" if rows else ""
    return f", n = {counts[0]}" if len(counts) == 1 else f", n = {counts[0]} to {counts[-1]}"
