"""Print tables and lines about results, analyses and files."""

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from cardiobench.cli.file_permissions import flags_to_repeat
from cardiobench.core.command import command
from cardiobench.core.config_file import read_config
from cardiobench.core.console import Console, print_error
from cardiobench.core.errors import NoResult, counted
from cardiobench.report.markdown import PAGE
from cardiobench.results import formatting
from cardiobench.results.collect import Problem
from cardiobench.results.record import Record
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.context import RunSummary

if TYPE_CHECKING:
    from cardiobench.runner.dry_run import DryRun

SHOWN_FAILURES = 10
SHOWN_WARNINGS = 5
"""Number of warnings after the table of results."""
OTHERS = "results beside the requested tasks"
ORIGIN = "origin"
DRY_RUN_COLUMNS = ("model", "dataset", "to encode", "time", "disk", "cells", "cached")


def print_results(
    console: Console,
    results: Sequence[ScoreResult],
    is_earlier: Callable[[Record], bool] = lambda record: False,
    *,
    place: object,
) -> None:
    """Print the table of results followed by their first warnings.

    Args:
        console: Console to print on.
        results: Results in any order.
        is_earlier: Function that returns whether a result comes from an earlier run.
        place: Where all warnings are.
    """
    _print_scores(console, "results", results, is_earlier)
    _print_warnings(console, formatting.warning_lines(results), place)


def _print_scores(
    console: Console, title: str, results: Sequence[ScoreResult], is_earlier: Callable[[Record], bool]
) -> None:
    ordered = formatting.ordered(list(results))
    shown = zip(ordered, formatting.tell_apart(ordered), strict=True)
    rows = [(*formatting.row(named), formatting.EARLIER if is_earlier(one) else "") for one, named in shown]
    _print_marked(console, title, formatting.COLUMNS, rows)
    for note in formatting.notes(results):
        console.print(note)


def _print_warnings(console: Console, lines: Sequence[str], place: object) -> None:
    """Print the first warnings, and the number of the others with the place where all are."""
    console.remarks(lines[:SHOWN_WARNINGS])
    if (more := len(lines) - SHOWN_WARNINGS) > 0:
        console.print(f"... and {counted(more, 'more warning')}; all are in {place}")


def _print_marked(console: Console, title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print a table whose last column is omitted if it is empty."""
    if any(row[-1] for row in rows):
        console.table(title, (*columns, ORIGIN), rows, unbroken=(ORIGIN,))
    else:
        console.table(title, columns, [row[:-1] for row in rows])


def print_summary(console: Console, summary: RunSummary, folder: Path) -> None:
    """Print results, analyses, inapplicable combinations, failures and files."""
    if not summary.is_main_process:
        return
    asked, others = summary.by_request()
    _print_scores(console, "results", asked, summary.is_earlier)
    _print_scores(console, OTHERS, others, summary.is_earlier)
    rows = [
        (*row, formatting.EARLIER if summary.is_earlier(analysis) else "")
        for analysis in summary.analyses
        for row in formatting.analysis_rows(analysis)
    ]
    _print_marked(console, "analyses", formatting.ANALYSIS_COLUMNS, rows)
    lines = [*formatting.warning_lines(summary.results), *formatting.analysis_warning_lines(summary.analyses)]
    page = next((file for file in summary.files if file.name == PAGE), f"the files below {folder}")
    _print_warnings(console, lines, page)
    # The sentence about missing results has all reasons, or refers to the table: each reason is printed once.
    has_all = all(reason.rstrip(".") in summary.no_result for *_, reason in summary.not_applicable)
    if not has_all:
        _print_not_applicable(console, summary)
    console.table("FAILED", ("model", "what", "id", "reason"), summary.failures[:SHOWN_FAILURES])
    if len(summary.failures) > SHOWN_FAILURES:
        console.print(f"... and {len(summary.failures) - SHOWN_FAILURES} more failures, all in failures.csv")
    print_files(console, summary.files, folder)
    if summary.config_file:
        flags = flags_to_repeat(summary.config_file, read_config(summary.config_file))
        console.print(f"repeat it with: {command('rerun', summary.config_file, *chain.from_iterable(flags))}")
    if told := summary.no_result if has_all else summary.no_result_below_table:
        print_error(f"{NoResult.__name__}: {told}")


def _print_not_applicable(console: Console, summary: RunSummary) -> None:
    by_reason: dict[tuple[str, str], list[str]] = {}
    for model, task, protocol, reason in summary.not_applicable:
        by_reason.setdefault((model, reason), []).append(f"{task} {protocol}")
    console.table(
        "not applicable",
        ("model", "reason", "task and protocol"),
        [(model, reason, ", ".join(cells)) for (model, reason), cells in by_reason.items()],
    )


def print_files(console: Console, files: Sequence[Path], folder: Path) -> None:
    """Print written files: pages and tables by name, figures by number."""
    figures = {file.with_suffix("") for file in files if file.suffix in (".png", ".svg")}
    pages = [
        file
        for file in files
        if file.suffix in (".md", ".html", ".csv", ".tex") and file.with_suffix("") not in figures
    ]
    console.print("")
    for file in pages:
        console.print(f"wrote {file}")
    if others := len(files) - len(pages):
        console.print(f"wrote {others} {'more ' if pages else ''}file{'s' * (others > 1)} below {folder}")


def print_problems(console: Console, problems: Sequence[Problem]) -> None:
    """Print results that are not ranked, drawn or shown, with reasons."""
    for problem in problems:
        console.print(f"{problem.consequence}: {problem.file}: {problem.kind}: {problem.message}")


def print_dry_run(plan: "DryRun", console: Console) -> None:
    """Print the plan of a run."""
    from cardiobench.runner.eta import format_seconds

    rows = [
        (
            row["model"],
            row["dataset"],
            str(row["to_encode"]),
            f"about {format_seconds(row['seconds'])}",
            f"{row['bytes'] / 1e6:.1f} MB",
            str(row["cells"]),
            str(row["cached"]),
        )
        for row in plan.rows
    ]
    console.table("plan of the run", DRY_RUN_COLUMNS, rows)
    for line in plan.prices:
        console.print(line)
    console.remarks(plan.problems)
    console.print(
        "the run would start; nothing was written"
        if not plan.problems
        else "part of it would fail; nothing was written"
    )
