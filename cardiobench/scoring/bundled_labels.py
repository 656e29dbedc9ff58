"""Label counts of tasks without their raw data: how often each class occurs in the published split."""

import pandas as pd

from cardiobench.data.spec import Task
from cardiobench.results.published import FOLDER

COUNTS = FOLDER / "class_counts.csv"


def bundled_references(task: Task) -> tuple[pd.DataFrame, str] | None:
    """Return references made of a task's class counts, and their source; None where no counts are known.

    Ids and patients are empty: counts say how often each class occurs, and not whose it is.
    """
    name = f"{task.dataset}/view" if task.target == "view" else task.name
    counts = pd.read_csv(COUNTS)
    counts = counts[(counts["task"] == name) & counts["label"].isin(task.classes)]
    if counts.empty:
        return None
    rows = counts.loc[counts.index.repeat(counts["count"])]
    table = pd.DataFrame({"id": "", "patient_id": "", "split": rows["split"], "y_true": rows["label"]})
    return table.reset_index(drop=True), f"class counts of the {counts['source'].iloc[0]}"
