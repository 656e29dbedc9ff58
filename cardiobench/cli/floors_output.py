"""What `cardiobench floors` prints: floors of the tasks, and the published numbers beside them."""

import pandas as pd

from cardiobench.core.console import Console
from cardiobench.results.formatting import FRACTIONS


def print_floors(table: pd.DataFrame, console: Console) -> None:
    """Print the floors, what is missing for the others, the published numbers, and how many of them show nothing.

    Args:
        table: as `cardiobench.scoring.floor_table.floor_table` makes it.
        console: where to.
    """
    from cardiobench.scoring.floor_table import counts_by_table

    tasks = table.drop_duplicates("task")
    console.table(
        "floors on the test split: what an answer without a model reaches",
        ("task", "metric", "n", "best constant", "answer", "train constant", "chance", "labels from"),
        [_floors(row) for row in tasks[tasks["known"]].to_dict("records")],
    )
    lacking: dict[str, list[str]] = {}
    for row in tasks[~tasks["known"] & (tasks["labels"] != "")].itertuples():
        lacking.setdefault(row.labels.splitlines()[0], []).append(row.task)
    for reason, names in lacking.items():
        console.print(f"no floor of {', '.join(names)}: {reason}")
    if "published" not in table:
        return
    printed = table[table["published"].notna()]
    console.table(
        "published numbers",
        ("task", "model", "protocol", "metric", "published", "best constant", "verdict", "source"),
        [_published(row) for row in printed.to_dict("records")],
    )
    for row in counts_by_table(printed).itertuples():
        console.print(
            f"{row.source}: of {row.numbers} classification numbers {row.no_better} are no better than the best "
            f"constant; {row.equal} equal a constant to the last digit"
        )


def _number(value: float, row: dict) -> str:
    if pd.isna(value):
        return "not known"
    return f"{100 * value:.2f} %" if row["metric"] in FRACTIONS else f"{value:.2f} {row['unit']}"


def _floors(row: dict) -> tuple[str, ...]:
    answer = row["best_constant_answer"]
    answer = answer if isinstance(answer, str) else f"{answer:.2f}"
    values = [_number(row[name], row) for name in ("best_constant", "train_constant", "chance")]
    return row["task"], row["metric"], str(int(row["n"])), values[0], answer, *values[1:], row["labels"]


def _published(row: dict) -> tuple[str, ...]:
    metric = row["published_metric"] + (f", {row['condition']}" if row["condition"] else "")
    same = row["known"] and row["published_metric"] == row["metric"]
    floor = _number(row["best_constant"], row) if same else ""
    verdict = row["verdict"] or ("needs the raw data" if not row["known"] else "")
    return row["task"], row["model"], row["protocol"], metric, row["printed"], floor, verdict, row["source"]
