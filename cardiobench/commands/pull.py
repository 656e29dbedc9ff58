"""`cardiobench pull`."""

import argparse
from pathlib import Path

HELP = "read the results in a model's repository"


def configure(parser: argparse.ArgumentParser) -> None:
    """Its flags."""
    parser.add_argument("model", metavar="ORG/MODEL")
    parser.add_argument("--revision", default="main", help="branch or commit; refs/pr/1 is the first pull request")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write the result files to DIR/<user>/")


def execute(arguments: argparse.Namespace) -> int:
    """Print the table and write the files; returns the exit code."""
    from cardiobench.hub.pull_results import pull, save
    from cardiobench.report.console import Console

    screen = Console()
    found = pull(arguments.model, arguments.revision)
    for user in dict.fromkeys(user for user, _ in found):
        screen.say(f"run by {user}")
        screen.results([result for who, result in found if who == user])
    if arguments.out:
        screen.say(f"wrote {len(save(found, arguments.out))} results below {arguments.out}")
    return 0
