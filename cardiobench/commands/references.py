"""`cardiobench references`."""

import argparse
from pathlib import Path

HELP = "write the truth of a task, for scoring predictions elsewhere"


def configure(parser: argparse.ArgumentParser) -> None:
    """Its flags."""
    parser.add_argument("task", metavar="TASK")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="raw folder (default: $CARDIOBENCH_DATA)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")


def execute(arguments: argparse.Namespace) -> int:
    """Write the file; returns the exit code."""
    from cardiobench.foreign import write_task_references

    write_task_references(arguments.task, arguments.data_dir, arguments.out)
    return 0
