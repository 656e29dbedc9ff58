"""Implement `cardiobench pull`."""

import argparse
from pathlib import Path

HELP = "read results from a model's repository"
GROUP = "share"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument("model", metavar="ORG/MODEL", help="model repository on the Hub")
    parser.add_argument("--revision", default="main", help="branch, commit or pull request such as refs/pr/1")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write the result files to DIR/<user>/")


def execute(arguments: argparse.Namespace) -> int:
    """Print the table, write the files and return the exit code."""
    from cardiobench.cli.output import print_results
    from cardiobench.core.console import Console
    from cardiobench.hub.pull_results import pull, save

    console = Console()

    def skip(problem: str) -> None:
        console.print(f"left out: {problem}")

    found = pull(arguments.model, arguments.revision, skip)
    for user in dict.fromkeys(user for user, _ in found):
        console.print(f"run by {user}")
        print_results(console, [result for who, result in found if who == user], place="the result files of --out")
    if arguments.out:
        console.print(f"wrote {len(save(found, arguments.out, skip))} results below {arguments.out}")
    return 0
