"""Plain printing, tables and progress bars; only the main process prints."""

import errno
import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import rich.box
import rich.console
import rich.progress
import rich.table
import rich.tree
from rich.markup import escape as escape_markup

from cardiobench.core.io import to_plain

PIPE_WIDTH = 200  # Width of tables that are written to a file or pipe.
WIDEST_NAME = 60  # Minimum width of the first column.


CONTROLS = dict.fromkeys([*(code for code in range(32) if chr(code) not in "\t\n"), *range(127, 160)], "\ufffd")
"""Control characters, with which a name in a file could move the cursor or change what the terminal shows."""


class _Screen(rich.console.Console):
    """Console that raises on a closed pipe, where rich would end the process with exit code 1."""

    def on_broken_pipe(self) -> None:
        """Re-raise the error instead of exiting."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def _screen(stream: TextIO) -> rich.console.Console:
    return _Screen(file=stream, width=None if stream.isatty() else PIPE_WIDTH, highlight=False)


def print_error(text: str) -> None:
    """Write a line to standard error immediately, from any thread, as the last line of a process."""
    sys.stderr.write(f"{text.translate(CONTROLS)}\n")
    sys.stderr.flush()


def escape(text: str) -> str:
    """Return a text that the console prints as it is, without markup and without control characters."""
    return escape_markup(text.translate(CONTROLS))


def _grow(tree: rich.tree.Tree, branches: Mapping[str, Any]) -> None:
    for label, below in branches.items():
        _grow(tree.add(escape(label)), below)


class Console:
    """Standard output and standard error of one process.

    Args:
        main: Whether this process prints; other processes of a run are silent.
        stdout_is_json: Print messages to standard error, so that only `json` writes to standard output.
    """

    def __init__(self, main: bool = True, *, stdout_is_json: bool = False):
        self.main = main
        self.err = _screen(sys.stderr)
        self.out = self.err if stdout_is_json else _screen(sys.stdout)

    def json(self, value: Any) -> None:
        """Write a value as JSON to standard output; numbers that are not finite become null."""
        if self.main:
            sys.stdout.write(json.dumps(to_plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")

    def print(self, text: str) -> None:
        """Print one line unchanged, without markup."""
        if self.main:
            self.out.print(escape(text), soft_wrap=True)

    def remarks(self, sentences: Iterable[str]) -> None:
        """Print sentences that must not be overlooked, one per line, each marked with `!`."""
        for sentence in sentences:
            self.print(f"! {sentence}")

    def tree(self, title: str, branches: Mapping[str, Any]) -> None:
        """Print nested branches as a tree; print nothing if there are none."""
        if not self.main or not branches:
            return
        tree = rich.tree.Tree(escape(title), highlight=False)
        _grow(tree, branches)
        self.out.print(tree)

    def table(
        self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], unbroken: Collection[str] = ()
    ) -> None:
        """Print a table; print nothing if it has no rows.

        Args:
            title: Title above the table.
            columns: Heads of the columns.
            rows: Cells of each row.
            unbroken: Columns whose cells are not wrapped.
        """
        if not self.main or not rows:
            return
        table = rich.table.Table(title=title, title_justify="left", box=rich.box.SIMPLE_HEAD, pad_edge=False)
        longest = max(len(str(row[0])) for row in rows)  # Keep names whole while other columns can be wrapped.
        for number, column in enumerate(columns):
            width = min(longest, WIDEST_NAME) if not number else None
            table.add_column(column, overflow="fold", min_width=width, no_wrap=column in unbroken)
        for row in rows:
            table.add_row(*(escape(str(cell)) for cell in row))
        self.out.print(table)

    @contextmanager
    def progress(self, label: str, total: int, doing: str = "encoding") -> Iterator[Callable[[int], None]]:
        """Show a progress bar with the remaining time; yields a function that takes the number of finished items."""
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
        """Print a failure that does not end the run to standard error."""
        if self.main:
            self.err.print(escape(f"FAILED {what}: {reason}"), soft_wrap=True)
