"""Implement `cardiobench leaderboard`."""

import argparse
from pathlib import Path

from cardiobench.cli.flags import whole_number

HELP = "show results in a leaderboard app, from folders or a Hub dataset, or publish the app as a Space"
GROUP = "share"
EXAMPLES = """\
examples:
  cardiobench leaderboard results                                        serve a folder on this machine
  cardiobench leaderboard org/cardiobench-results                        serve a dataset of results
  cardiobench leaderboard org/cardiobench-results --write-space space    write the files of a Space
  cardiobench leaderboard org/cardiobench-results --space org/leaderboard --yes
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument(
        "results",
        nargs="*",
        default=["results"],
        metavar="RESULTS",
        help="folders of results, or a dataset of results on the Hub (default: results)",
    )
    parser.add_argument("--revision", default="main", help="branch or commit of the dataset (default: %(default)s)")
    parser.add_argument(
        "--suites",
        nargs="+",
        default=[],
        metavar="NAME",
        help="suites to show besides those of this package and its extensions; results of others are listed as not ranked",
    )
    parser.add_argument("--port", type=whole_number(0, 65535), help="port (default: a free one)")
    parser.add_argument("--write-space", type=Path, metavar="DIR", help="write the files of a Space instead of serving")
    parser.add_argument("--space", metavar="ORG/NAME", help="push the Space to the Hub instead of serving")
    parser.add_argument("--private", action="store_true", help="create the Space as private")
    parser.add_argument("--yes", action="store_true", help="write to the Hub; without it, show what would change")


def execute(arguments: argparse.Namespace) -> int:
    """Serve, write or push the app, and return the exit code."""
    from cardiobench.core.console import Console

    console = Console()
    if arguments.write_space:
        from cardiobench.leaderboard.files import write_files

        for file in write_files(arguments.results[0], arguments.write_space):
            console.print(f"wrote {file}")
    if arguments.space:
        from cardiobench.hub.publish import publish
        from cardiobench.leaderboard.files import publication

        wanted = publication(arguments.results[0], arguments.space, private=arguments.private)
        written, failed = publish([wanted], dry_run=not arguments.yes, on_diff=console.print)
        if not arguments.yes and any(done.changes for done in written):
            console.print("\nNothing was written; add --yes to write it.")
        return 1 if failed else 0
    if not arguments.write_space:
        from cardiobench.leaderboard.app import launch

        launch(arguments.results, revision=arguments.revision, suites=arguments.suites, port=arguments.port)
    return 0
