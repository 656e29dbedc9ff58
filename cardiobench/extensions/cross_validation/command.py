"""Implement `cardiobench subsets`."""

import argparse
from pathlib import Path

from cardiobench.cli.flags import SEED

HELP = "write the balanced subsets (XS, S, M, L) of an ECG task as lists of ids"
GROUP = "data"
EXAMPLES = """\
Write the records used by cross_validation with the same seed; smaller subsets are contained in larger ones:
  cardiobench subsets ptb_xl/cd --data-dir /data/ptb_xl --out subsets
writes subsets/ptb_xl__cd__XS.json etc. with task, size, seed and one id per line.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument("task", metavar="TASK", help="a task of two classes, such as ptb_xl/cd")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="raw or prepared folder")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="output folder; one JSON file per size")
    parser.add_argument("--seed", type=SEED, default=0, help="seed of the draw (default: 0)")
    parser.add_argument(
        "--profile",
        choices=("default", "paper"),
        default="default",
        help="default: at most one record per patient; paper: records, regardless of the patient",
    )
    parser.add_argument("--allow-missing", action="store_true", help="draw from an incomplete copy")


def execute(arguments: argparse.Namespace) -> int:
    """Write the files and return the exit code: 1 if no size is available."""
    from cardiobench.core.console import Console
    from cardiobench.data.ecg_subsets import read_subset, write_subsets

    console = Console()
    written, reasons = write_subsets(
        arguments.task,
        arguments.data_dir,
        arguments.out,
        seed=arguments.seed,
        one_a_patient=arguments.profile == "default",
        allow_missing=arguments.allow_missing,
    )
    for path in written.values():
        subset = read_subset(path)
        console.print(f"size {subset.size} of {subset.task}: {len(subset.ids)} records, wrote {path}")
    for reason in reasons.values():
        console.print(reason)
    return 0 if written else 1
