"""What `cardiobench report` prints: the table, what is not ranked, and where the page is."""

from collections.abc import Sequence
from pathlib import Path

from cardiobench.report.collect import Problem
from cardiobench.report.console import Console
from cardiobench.report.page.write import write_report


def report(
    folders: Sequence[Path],
    out: Path,
    png: bool = False,
    examples: Sequence[str] | None = None,
    data_dir: Path | None = None,
) -> None:
    """Write the report and say what is in it, the page last."""
    screen = Console()
    collection, (page, twin, *others) = write_report(folders, out, png=png, examples=examples, data_dir=data_dir)
    screen.results(collection.results)
    say_problems(collection.problems, screen)
    screen.say(f"wrote {len(others)} pictures and tables, {twin}")
    screen.say(f"open {page}")


def say_problems(problems: Sequence[Problem], screen: Console) -> None:
    """What is not ranked, drawn or shown, and why."""
    for problem in problems:
        screen.say(f"{problem.consequence}: {problem.where}: {problem.kind}: {problem.what}")
