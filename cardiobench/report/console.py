"""What a run says while it works: plan, progress, table, files. Silent on all processes but the main one."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import rich.console
import rich.progress
import rich.table
from rich.markup import escape

from cardiobench.report import tables

if TYPE_CHECKING:
    import pandas as pd

    from cardiobench.data.source import Source
    from cardiobench.data.spec import Task
    from cardiobench.models.base import Encoder
    from cardiobench.plan import DatasetPlan
    from cardiobench.report.result import Result
    from cardiobench.runner import Outcome

PIPE_WIDTH = 200  # of a table that goes into a file or a pipe
SHOWN_FAILURES = 10


def _screen(stream) -> rich.console.Console:
    return rich.console.Console(file=stream, width=None if stream.isatty() else PIPE_WIDTH, highlight=False)


class Console:
    """The voice of one process."""

    def __init__(self, main: bool = True):
        self.main = main
        self.out = _screen(sys.stdout)
        self.err = _screen(sys.stderr)

    def say(self, text: str) -> None:
        """One line, as it stands."""
        if self.main:
            self.out.print(escape(text), soft_wrap=True)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table; nothing when it would be empty."""
        if not self.main or not rows:
            return
        table = rich.table.Table(title=title, title_justify="left", box=rich.table.box.SIMPLE_HEAD, pad_edge=False)
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(escape(str(cell)) for cell in row))
        self.out.print(table)

    def sources(self, sources: "dict[str, Source]", absent: dict[str, str]) -> None:
        """Which datasets are here, how complete, and which are not."""
        rows = []
        for name, source in sources.items():
            counts = source.frame["split"].value_counts()
            missing = source.coverage()
            notes = [f"{missing['missing_files']} files missing"] if missing["missing_files"] else []
            notes += [f"{missing['absent_rows']} rows of the release absent"] if missing["absent_rows"] else []
            notes += ["synthetic twin"] if source.table.twin else []
            notes += [f"{len(ids)} left out: {reason}" for reason, ids in source.table.excluded.items() if ids]
            where = "generated" if source.spec.generated else str(source.raw)
            rows.append(
                (
                    name,
                    source.spec.version,
                    *(int(counts.get(s, 0)) for s in ("train", "validation", "test")),
                    "; ".join(notes) or "complete",
                    where,
                )
            )
        self.table("data", ("dataset", "version", "train", "validation", "test", "state", "where"), rows)
        if absent:
            self.say(f"no data here for: {', '.join(absent)} (cardiobench list says where to ask for it)")

    def plan(self, encoder: "Encoder", plans: "Sequence[DatasetPlan]") -> None:
        """The model, how it was loaded, what it does to a recording, and what is left to encode."""
        self.say(f"\nmodel {encoder.name} @ {encoder.revision}\n  loaded by: {encoder.loaded_by}")
        self.say("  preprocessing: " + ", ".join(f"{key}={value}" for key, value in encoder.preprocessing.items()))
        for warning in encoder.warnings:
            self.say(f"  warning: {warning}")
        rows = [
            (
                task.name,
                len(p.source.task_rows(task)),
                len(p.lines) - len(p.to_encode),
                len(p.to_encode),
                str(p.store.folder),
            )
            for p in plans
            for task in p.tasks
        ]
        self.table("plan", ("task", "recordings", "cached", "to encode", "embeddings"), rows)

    @contextmanager
    def progress(self, label: str, total: int, doing: str = "encoding") -> Iterator:
        """A progress bar with time left; yields a function that is told how many are done."""
        if not self.main or not total:
            yield lambda count: None
            return
        columns = (
            rich.progress.TextColumn("{task.description}"),
            rich.progress.BarColumn(),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TimeElapsedColumn(),
            rich.progress.TimeRemainingColumn(),
        )
        with rich.progress.Progress(*columns, console=self.err) as bar:
            task = bar.add_task(escape(f"{doing} {label}"), total=total)
            yield lambda count: bar.advance(task, count)

    def failure(self, what: str, reason: str) -> None:
        """Something that did not work while the run goes on."""
        if self.main:
            self.err.print(escape(f"FAILED {what}: {reason}"), soft_wrap=True)

    def results(self, results: "list[Result]") -> None:
        """The table at the end, and every warning under it."""
        self.table("results", tables.COLUMNS, [tables.row(result) for result in tables.ordered(results)])
        for task, sentence, who in tables.warnings(results):
            self.say(f"! {task}: {sentence}" + (f" ({who})" if who else ""))

    def outcome(self, outcome: "Outcome", folder: Path) -> None:
        """Table, what does not apply, what failed, and the files."""
        if not self.main:
            return
        self.results(outcome.results)
        self.table(
            "studies", tables.RECORD_COLUMNS, [row for record in outcome.records for row in tables.record_rows(record)]
        )
        for record in outcome.records:
            for sentence in record.warnings:
                who = ", ".join(model["name"] for model in record.models)
                self.say(f"! {record.protocol} {record.subject}: {sentence} ({who})")
        apart: dict[tuple[str, str], list[str]] = {}
        for model, task, protocol, reason in outcome.not_applicable:
            apart.setdefault((model, reason), []).append(f"{task} {protocol}")
        rows = [(model, reason, ", ".join(what)) for (model, reason), what in apart.items()]
        self.table("not applicable", ("model", "reason", "task and protocol"), rows)
        self.table("FAILED", ("model", "what", "id", "reason"), outcome.failures[:SHOWN_FAILURES])
        if len(outcome.failures) > SHOWN_FAILURES:
            self.say(f"... and {len(outcome.failures) - SHOWN_FAILURES} more failures, all in failures.csv")
        self.files(outcome.files, folder)

    def files(self, files: Sequence[Path], folder: Path) -> None:
        """The files that were written; pages and tables by name, pictures with what is behind them by count."""
        pictures = {file.with_suffix("") for file in files if file.suffix in (".png", ".svg")}
        pages = [
            file for file in files if file.suffix in (".md", ".html", ".csv") and file.with_suffix("") not in pictures
        ]
        others = len(files) - len(pages)
        if others:
            self.say(f"\nwrote {others} files below {folder}")
        for file in pages:
            self.say(f"wrote {file}")

    def references(self, task: "Task", table: "pd.DataFrame", source: "Source", out: Path) -> None:
        """How many units the references have, and what of the release is not among them."""
        counts = ", ".join(f"{split} {count}" for split, count in table["split"].value_counts(sort=False).items())
        self.say(f"wrote {out}: {len(table)} units of {task.name} ({counts})")
        if source.table.absent:
            absent = ", ".join(f"{split} {count}" for split, count in source.table.absent.items())
            self.say(
                f"! the release has more rows than this copy (absent: {absent}); scores on these references do not cover the whole test split"
            )
