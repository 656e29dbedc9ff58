"""`cardiobench references`."""

import argparse
from pathlib import Path

HELP = "write the truth of a task, for scoring predictions elsewhere"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("task", metavar="TASK")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="raw folder (default: $CARDIOBENCH_DATA)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")


def execute(arguments: argparse.Namespace) -> int:
    """Write the file and print how many units it has; returns the exit code."""
    from cardiobench.core.console import Console
    from cardiobench.data.references import write_references
    from cardiobench.runner.external_predictions import task_references
    from cardiobench.scoring.score import GENERATED

    task, table, dataset = task_references(arguments.task, arguments.data_dir)
    write_references(table, arguments.out)
    console = Console()
    counts = ", ".join(f"{split} {count}" for split, count in table["split"].value_counts(sort=False).items())
    console.print(f"wrote {arguments.out}: {len(table)} units of {task.name} ({counts})")
    if dataset.generated:
        console.print(f"! {GENERATED}")
    if dataset.table.absent:
        absent = ", ".join(f"{split} {count}" for split, count in dataset.table.absent.items())
        console.print(
            f"! the release has more rows than this copy (absent: {absent}); "
            "scores on these references do not cover the whole test split"
        )
    return 0
