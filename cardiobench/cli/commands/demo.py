"""`cardiobench demo`."""

import argparse
from pathlib import Path

HELP = "the baselines on bundled and generated data, from embedding to report"


def configure(parser: argparse.ArgumentParser) -> None:
    """Its flags."""
    parser.add_argument("--output-dir", type=Path, default=Path("results"), metavar="DIR")


def execute(arguments: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    from cardiobench.cli.demo import demo

    return demo(arguments.output_dir)
