"""Implement `cardiobench prepare`."""

import argparse
import sys
from pathlib import Path

from cardiobench.cli.flags import whole_number
from cardiobench.core.setting import MOST_PROCESSES

HELP = "prepare a dataset as a folder that datasets.load_dataset reads"
GROUP = "data"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument("dataset", metavar="DATASET", help="dataset, such as tmed2")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="raw folder (default: $CARDIOBENCH_DATA)")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="output folder; DIR/cardiobench/<dataset>/ is written"
    )
    parser.add_argument("--allow-missing", action="store_true", help="accept an incomplete copy")
    parser.add_argument(
        "--num-proc", type=whole_number(1, MOST_PROCESSES), metavar="N", help="number of processes that read recordings"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Build the folder and return the exit code."""
    from cardiobench.data.prepare import prepare

    folder = prepare(
        arguments.dataset,
        arguments.data_dir,
        arguments.out,
        allow_missing=arguments.allow_missing,
        num_proc=arguments.num_proc,
    )
    sys.stdout.write(
        f"wrote {folder}\nfrom {arguments.out}: datasets.load_dataset('cardiobench/{arguments.dataset}')\n"
    )
    return 0
