"""Implement `cardiobench references`."""

import argparse
from pathlib import Path

HELP = "write the references (true labels) of a task for scoring predictions"
GROUP = "data"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument("task", metavar="TASK", help="task, such as tmed2/as")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="raw folder (default: $CARDIOBENCH_DATA)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="output CSV file")


def check_replaceable(path: Path) -> None:
    """Refuse to overwrite a file that is not a table of references.

    Raises:
        BadConfig: The file exists and is not a table of references.
    """
    from cardiobench.core.errors import BadConfig, CardioBenchError
    from cardiobench.core.tables import read_table

    if not path.is_file():
        return
    try:
        columns = set(map(str, read_table(path).columns))
    except CardioBenchError:
        columns = set()
    if not {"id", "split", "y_true"} <= columns:
        raise BadConfig(f"{path} exists and is not a table of references. Choose another name for --out, or remove it.")


def execute(arguments: argparse.Namespace) -> int:
    """Write the file, print the number of units and return the exit code."""
    from cardiobench.core.console import Console
    from cardiobench.runner.external_predictions import task_references
    from cardiobench.scoring.score import GENERATED

    check_replaceable(arguments.out)
    references, dataset = task_references(arguments.task, arguments.data_dir)
    references.write(arguments.out)
    console = Console()
    table = references.table
    counts = ", ".join(f"{split} {count}" for split, count in table["split"].value_counts(sort=False).items())
    console.print(f"wrote {arguments.out}: {len(table)} units of {references.task.name} ({counts})")
    if len(references.unlabelled):
        console.print(
            f"{len(references.unlabelled)} further units have no label; their y_true is empty and they are not scored"
        )
    if dataset.generated:
        console.remarks([GENERATED])
    if dataset.table.absent:
        absent = ", ".join(f"{split} {count}" for split, count in dataset.table.absent.items())
        console.print(
            f"! the release has more rows than this copy (absent: {absent}); "
            "scores on these references have a coverage below 100 %"
        )
    return 0
