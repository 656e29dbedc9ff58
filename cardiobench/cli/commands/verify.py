"""`cardiobench verify`."""

import argparse
from pathlib import Path

HELP = "score the predictions of a submission to a dataset of results again, and compare every number"
EXAMPLES = """\
examples
  one pull request
      cardiobench verify org/cardiobench-results --revision refs/pr/3
  all that are open, as the workflow of a dataset of results does
      cardiobench verify org/cardiobench-results --pull-requests

exit code 0: every number came out as claimed, 1: some did not
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("dataset", metavar="ORG/NAME", help="dataset of results")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--revision", metavar="REV", help="refs/pr/3, a branch or a commit; main: all results")
    which.add_argument("--pull-requests", action="store_true", help="every open pull request")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="raw or prepared data (default: as for a run)")


def execute(arguments: argparse.Namespace) -> int:
    """Print what differs; returns the exit code."""
    from cardiobench.core.console import Console
    from cardiobench.leaderboard.verify import open_pull_requests, verify_submission

    console = Console()
    revisions = open_pull_requests(arguments.dataset) if arguments.pull_requests else [arguments.revision]
    failed = 0
    for revision in revisions:
        checks = verify_submission(arguments.dataset, revision, arguments.data_dir)
        for check in checks:
            console.print(f"{revision} {'FAILED' if check.problems else 'ok'} {check.name}")
            for problem in check.problems:
                console.print(f"  {problem}")
        wrong = sum(bool(check.problems) for check in checks)
        failed += wrong
        console.print(f"{revision}: {len(checks) - wrong} of {len(checks)} results came out as claimed")
    if not revisions:
        console.print(f"{arguments.dataset} has no open pull request")
    return 1 if failed else 0
