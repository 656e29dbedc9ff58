"""Implement `cardiobench rerun`."""

import argparse
from pathlib import Path

from cardiobench.cli.flags import add_settings
from cardiobench.core.config import RunConfig

HELP = "repeat a run from its run.yaml"
GROUP = "run"
EXAMPLES = """\
examples
  complete a run, or confirm that it is complete
      cardiobench rerun results/runs/3f2a91c0d4e5/run.yaml
  repeat the run into another folder, scoring everything again
      cardiobench rerun results/runs/3f2a91c0d4e5/run.yaml --output-dir again
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument("config", type=Path, metavar="FILE", help="run.yaml of the run; flags override it")
    parser.add_argument("--json", action="store_true", help="write results as JSON to standard output")
    add_settings(parser, RunConfig)


def execute(arguments: argparse.Namespace) -> int:
    """Repeat the run and return the exit code."""
    from cardiobench.cli.eval import read_settings, run_and_print

    return run_and_print(read_settings(arguments), as_json=arguments.json)
