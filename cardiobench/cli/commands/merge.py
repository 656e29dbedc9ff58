"""Implement `cardiobench merge`."""

import argparse
from pathlib import Path

HELP = "merge the results folders of several machines"
GROUP = "run"
EXAMPLES = """\
examples
  combine shards of a job array from machines without a shared disk
      cardiobench eval --model org/a org/b --tasks ptb_xl georgia --shard 1/2 --output-dir part1
      cardiobench eval --model org/a org/b --tasks ptb_xl georgia --shard 2/2 --output-dir part2
      cardiobench merge part1 part2 --out results
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument(
        "folders", nargs="+", type=Path, metavar="FOLDER", help="results folder (--output-dir) of each run"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FOLDER", help="folder for all results; may already contain some"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Merge the folders and return the exit code."""
    from cardiobench.core.command import command
    from cardiobench.core.console import Console
    from cardiobench.core.errors import first_n
    from cardiobench.results.merge import merge

    merged = merge(arguments.folders, arguments.out)
    console = Console()
    console.print(f"{merged.copied} results copied to {arguments.out}, {merged.kept} were already there")
    for folder in merged.empty:
        console.print(f"no results in {folder}: its shard was empty, or its run did not finish")
    if merged.bare:
        console.print(
            f"{len(merged.bare)} results have no predictions: {first_n(merged.bare)}. If predictions are expected, copy that "
            "folder again and merge again."
        )
    console.print(f"next: {command('report', arguments.out)}")
    return 0
