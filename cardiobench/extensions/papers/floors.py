"""Implement `cardiobench floors`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from cardiobench.core.console import Console

HELP = "show the floor of each task next to published scores"
GROUP = "results"
EXAMPLES = """\
The package includes labels of CardiacNet, HMC-QU and SegRWMA, and class counts of TMED-2 and of the views. All other
floors need the raw tables of the dataset (--data-dir or $CARDIOBENCH_DATA); no recording is read.
  cardiobench floors
  cardiobench floors tmed2/as segrwma --csv floors.csv
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="tasks or datasets (default: all)")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="raw folder (default: $CARDIOBENCH_DATA)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write the table, unrounded, to this CSV file")


def execute(arguments: argparse.Namespace) -> int:
    """Print the tables and return the exit code."""
    from cardiobench.core.console import Console
    from cardiobench.core.tables import write_csv
    from cardiobench.extensions.papers.floor_table import floor_table, tasks_by_name

    console = Console()
    table = floor_table(tasks_by_name(arguments.tasks), arguments.data_dir, others=not arguments.tasks)
    print_floors(table, console)
    if arguments.csv:
        console.print(f"wrote {write_csv(table, arguments.csv)}")
    return 0


def print_floors(table: "pd.DataFrame", console: "Console") -> None:
    """Print floors, missing data, published scores, and counts of uninformative scores.

    Args:
        table: Table from `cardiobench.extensions.papers.floor_table.floor_table`.
        console: Output console.
    """
    from cardiobench.extensions.papers.floor_table import counts_by_table
    from cardiobench.results.formatting import FLOOR_MEANING

    tasks = table.drop_duplicates("task")
    floored = tasks["known"] & tasks["best_uninformed"].notna()
    console.table(
        f"floors on the test split: {FLOOR_MEANING}",
        ("task", "metric", "n", "floor", "best constant", "answer", "train constant", "labels from"),
        [_floors(row) for row in tasks[floored].to_dict("records")],
    )
    lacking: dict[str, list[str]] = {}
    for row in tasks[~floored & (tasks["labels"] != "")].itertuples():
        lacking.setdefault(row.no_floor if row.known else row.labels.splitlines()[0], []).append(row.task)
    for reason, names in lacking.items():
        console.print(f"no floor of {', '.join(names)}: {reason}")
    if "published" not in table:
        return
    printed = table[table["published"].notna()]
    console.table(
        "published numbers",
        ("task", "model", "protocol", "metric", "published", "floor", "verdict", "source"),
        [_published(row) for row in printed.to_dict("records")],
    )
    for row in counts_by_table(printed).itertuples():
        console.print(
            f"{row.source}: {row.numbers - row.no_better} of {row.numbers} classification numbers exceed what guessing at the "
            f"class rates reaches on average; {row.equal} equal a constant to the last digit"
        )


def _number(value: float, row: dict[str, Any]) -> str:
    if value != value:  # NaN is not equal to itself.
        return "not known"
    from cardiobench.metrics.load import find_number

    number = find_number(row["metric"])
    return number.with_unit(value, row["unit"])


def _floors(row: dict[str, Any]) -> tuple[str, ...]:
    answer = row["best_constant_answer"]
    answer = answer if isinstance(answer, str) else f"{answer:.2f}"
    values = [_number(row[name], row) for name in ("best_uninformed", "best_constant", "train_constant")]
    return row["task"], row["metric"], str(int(row["n"])), *values[:2], answer, *values[2:], row["labels"]


def _published(row: dict[str, Any]) -> tuple[str, ...]:
    metric = row["published_metric"] + (f", {row['condition']}" if row["condition"] else "")
    same = row["known"] and row["published_metric"] == row["metric"]
    floor = _number(row["best_uninformed"], row) if same and not row["no_floor"] else ""
    verdict = row["verdict"] or ("needs the raw data" if not row["known"] else "")
    return row["task"], row["model"], row["protocol"], metric, row["printed"], floor, verdict, row["source"]
