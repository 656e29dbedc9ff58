"""`cardiobench floors`."""

import argparse
from pathlib import Path

HELP = "what an answer without a model scores on each task, beside every published number"
EXAMPLES = """\
Labels of CardiacNet, HMC-QU and SegRWMA come with the package, class counts of TMED-2 and of the views too; the other
floors need the raw tables of the dataset (--data-dir or $CARDIOBENCH_DATA), of which no recording is read.
  cardiobench floors
  cardiobench floors tmed2/as segrwma --csv floors.csv
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Its flags."""
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="tasks or datasets (default: all)")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="raw folder (default: $CARDIOBENCH_DATA)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the table too, every digit kept")


def execute(arguments: argparse.Namespace) -> int:
    """Print the tables; returns the exit code."""
    from cardiobench.cli.floors_output import print_floors
    from cardiobench.core.console import Console
    from cardiobench.core.tables import write_csv
    from cardiobench.scoring.floor_table import floor_table, tasks_by_name

    console = Console()
    table = floor_table(tasks_by_name(arguments.tasks), arguments.data_dir, others=not arguments.tasks)
    print_floors(table, console)
    if arguments.csv:
        console.print(f"wrote {write_csv(table, arguments.csv)}")
    return 0
