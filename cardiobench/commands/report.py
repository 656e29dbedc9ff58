"""`cardiobench report`."""

import argparse
from pathlib import Path

HELP = "one page of the results in a folder"


def configure(parser: argparse.ArgumentParser) -> None:
    """Its flags."""
    parser.add_argument("results", type=Path, nargs="?", default=Path("results"), metavar="RESULTS")
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: the results folder itself")


def execute(arguments: argparse.Namespace) -> int:
    """Write the page; returns the exit code."""
    from cardiobench.report.markdown import report_folder

    report_folder(arguments.results, arguments.out or arguments.results)
    return 0
