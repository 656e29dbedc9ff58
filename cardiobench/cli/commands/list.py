"""`cardiobench list`."""

import argparse
from pathlib import Path

HELP = "datasets, tasks and models, and what data is here"


def configure(parser: argparse.ArgumentParser) -> None:
    """Its flags."""
    parser.add_argument("--data-dir", type=Path, metavar="DIR")
    parser.add_argument("--models", action="store_true", help="models only")


def execute(arguments: argparse.Namespace) -> int:
    """Print it; returns the exit code."""
    from cardiobench.cli.listing import print_listing

    print_listing(arguments.data_dir, datasets=not arguments.models)
    return 0
