"""Implement `cardiobench demo`: run baselines without weights on real and generated recordings."""

import argparse
import io
import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from cardiobench.cli import eval as evaluation

if TYPE_CHECKING:
    from cardiobench.core.console import Console
    from cardiobench.results.score_result import ScoreResult

HELP = "evaluate baselines on bundled and generated data, from embeddings to report"
GROUP = "run"
MODELS = (
    "cardiobench/constant",
    "cardiobench/metadata",
    "cardiobench/pixel-motion",
    "cardiobench/random-vit",
    "cardiobench/ecg-morphology",
    "cardiobench/minirocket",
)
ROWS = 12
"""Number of rows in the table; the report shows all results."""
LOG = "demo.log"
SHOWN_OF_A_FAILURE = 40
"""Number of final log lines to print after a failure."""
MODEL = re.compile(r"^model (\S+) @ ", re.MULTILINE)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument(
        "--output-dir", type=Path, default=Path("results"), metavar="DIR", help="output folder (default: results)"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="print the complete output of the run")


def execute(arguments: argparse.Namespace) -> int:
    """Print examples of extensions, run the evaluation, write the report, and return the exit code."""
    from cardiobench.core.command import command
    from cardiobench.core.console import Console
    from cardiobench.core.errors import UnknownName
    from cardiobench.data import catalog
    from cardiobench.results import formatting
    from cardiobench.runner.hooks import run_hooks
    from cardiobench.tasks.task import unscorable

    folder, console = arguments.output_dir, Console()
    for hooks in run_hooks():
        try:
            parts = list(hooks.demo())
        except UnknownName as error:  # Its dataset, its model or a metric was removed.
            console.print(f"An example is left out: {error.args[0]}\n")
            continue
        for part in parts:
            console.print(f"{part}\n") if isinstance(part, str) else console.table(*part)
    own = [catalog.spec(name) for name in catalog.list_datasets() if catalog.is_own(name)]
    specs = sorted(own, key=lambda spec: spec.generated)  # Real recordings first.
    tasks = [catalog.task(f"{spec.name}/{target}") for spec in specs for target in spec.demo]
    for reason in filter(None, map(unscorable, tasks)):
        console.print(f"A task is left out: {reason}\n")
    names = [task.name for task in tasks if not unscorable(task)]
    line = ["--model", *MODELS, "--tasks", *names, "--output-dir", str(folder)]
    sys.stdout.write(f"$ {command('eval', *line)}\n")
    sys.stdout.flush()
    # In this process, because another one would import the same libraries again.
    if code := evaluation.main(line) if arguments.verbose else run_quietly(line, folder, console):
        return code
    from cardiobench.report.page.write import write_report

    collection, (page, *_) = write_report([folder], folder, markdown=False, examples=())
    if not arguments.verbose:
        console.table("results", formatting.COLUMNS, [formatting.row(one) for one in select_rows(collection.results)])
        console.print(
            f"{len(collection.results)} results and all warnings are in the report; the complete output of the run is in {folder / LOG}"
        )
    console.print(f"\nthe report, for a browser: {page.resolve()}")
    return 0


def run_quietly(line: list[str], folder: Path, console: "Console") -> int:
    """Run `cardiobench.eval` with one progress line per model, writing its complete output to a log.

    Args:
        line: Arguments of the command.
        folder: Folder of the log.
        console: Console for progress; after a failure, it also shows the end of the log.

    Returns:
        Exit code of the command.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOG).open("w", encoding="utf-8", buffering=1) as file:
        log = _Log(file, console)
        with redirect_stdout(log), redirect_stderr(log):
            code = evaluation.main(line)
    if code:
        console.print("\n".join((folder / LOG).read_text(encoding="utf-8").splitlines()[-SHOWN_OF_A_FAILURE:]))
    return code


class _Log(io.TextIOBase):
    """Stream that copies text to a file and prints a progress line when a model starts."""

    def __init__(self, file: TextIO, console: "Console"):
        self.file, self.console, self.started = file, console, 0

    def write(self, text: str) -> int:
        """Write a text; `model NAME @ ...` starts a model."""
        for name in MODEL.findall(text):
            self.started += 1
            self.console.print(f"  {self.started} of {len(MODELS)}: {name}")
        return self.file.write(text)


def select_rows(results: Sequence["ScoreResult"]) -> list["ScoreResult"]:
    """Return up to `ROWS` results: first those on patients, then the best of each task on generated recordings."""
    from cardiobench.results.formatting import ordered

    real = ordered([result for result in results if not result.generated])
    by_task: dict[str, list[ScoreResult]] = {}
    for result in ordered([result for result in results if result.generated]):
        by_task.setdefault(result.task, []).append(result)
    return [*real, *(one for task in by_task.values() for one in task[:1])][:ROWS]
