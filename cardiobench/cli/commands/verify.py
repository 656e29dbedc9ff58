"""Implement `cardiobench verify`."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cardiobench.leaderboard.verify import Check

MOST_LINES = 50
"""Maximum number of shown differences of a result."""
HELP = "recompute submitted results from their predictions, and compare every field"
GROUP = "share"
EXAMPLES = """\
examples
  one pull request
      cardiobench verify org/cardiobench-results --revision refs/pr/3
  verify all open pull requests, as the workflow of a results dataset does
      cardiobench verify org/cardiobench-results --pull-requests

outcome of a result
  ok              every field was confirmed, except those listed as taken on trust
  not verifiable  all fields that predictions can confirm were confirmed; the reason names the others
  older rules     the values were confirmed; the result is not ranked
  FAILED          fields differ; the lines below name them
exit code 0: nothing failed, 1: something did
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument("dataset", metavar="ORG/NAME", help="dataset of results")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--revision", metavar="REV", help="branch, commit or pull request such as refs/pr/3; main: all results"
    )
    which.add_argument("--pull-requests", action="store_true", help="verify every open pull request")
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="raw or prepared data (default: the same as for `cardiobench eval`)",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the differences and return the exit code."""
    from cardiobench.core.console import Console
    from cardiobench.leaderboard.differences import on_trust
    from cardiobench.leaderboard.verify import LONGEST_LINE, verify_pull_requests, verify_submission
    from cardiobench.report.plots.style import shorten

    console = Console()
    dataset, revision, data_dir = arguments.dataset, arguments.revision, arguments.data_dir
    found: Iterable[tuple[str, list[Check]]] = (
        verify_pull_requests(dataset, data_dir)
        if arguments.pull_requests
        else [(revision, verify_submission(dataset, revision, data_dir))]
    )
    failed = checked = 0
    any_request = False
    for revision, checks in found:
        any_request = True
        for check in checks:
            console.print(f"{revision} {check.outcome} {check.name}")
            for line in (*check.problems[:MOST_LINES], *check.notes):
                console.print(f"  {shorten(line, LONGEST_LINE)}")
            if (more := len(check.problems) - MOST_LINES) > 0:
                console.print(f"  and {more:,} more")
        wrong = sum(bool(check.problems) for check in checks)
        failed, checked = failed + wrong, checked + len(checks)
        console.print(f"{revision}: {len(checks) - wrong} of {len(checks)} results were confirmed")
    if not any_request:
        console.print(f"{arguments.dataset} has no open pull request")
    if checked:
        console.print("taken on trust:")
        for field, reason in on_trust().items():
            console.print(f"  {field}: {reason}")
    return 1 if failed else 0
