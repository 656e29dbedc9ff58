"""Implement `cardiobench phantom`."""

import argparse
import sys
from pathlib import Path

from cardiobench.cli.flags import SEED, whole_number

HELP = "write a synthetic twin of a dataset in its raw layout"
GROUP = "data"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument("dataset", metavar="DATASET", help="dataset, such as tmed2")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="output folder")
    parser.add_argument(
        "--patients",
        type=whole_number(1, 100_000),
        default=20,
        metavar="N",
        help="number of patients (default: %(default)s)",
    )
    parser.add_argument("--seed", type=SEED, default=0, help="seed (default: %(default)s)")


def execute(arguments: argparse.Namespace) -> int:
    """Write the folder and return the exit code."""
    from cardiobench.data.twin import write_twin

    write_twin(arguments.dataset, arguments.out, patients=arguments.patients, seed=arguments.seed)
    sys.stdout.write(f"wrote {arguments.out}: {arguments.dataset} with generated patients, for use as --data-dir\n")
    return 0
