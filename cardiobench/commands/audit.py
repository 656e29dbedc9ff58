"""`cardiobench audit`."""

import argparse
from pathlib import Path

HELP = "what to know of a copy of a dataset: counts, crossings, doubles, gaps"


def configure(parser: argparse.ArgumentParser) -> None:
    """Its flags."""
    parser.add_argument("dataset", metavar="DATASET")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="raw folder (default: $CARDIOBENCH_DATA)")
    parser.add_argument("--no-media", action="store_true", help="do not read the recordings to find doubles")


def execute(arguments: argparse.Namespace) -> int:
    """Print it; returns the exit code."""
    from cardiobench.data.audit import print_audit

    print_audit(arguments.dataset, arguments.data_dir, media=not arguments.no_media)
    return 0
