"""Truth that needs no raw data: labels of the splits that come with the package, and published counts of classes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.results.published import FOLDER

COUNTS = FOLDER / "class_counts.csv"


@dataclass(frozen=True)
class Shipped:
    """Where a task's labels stand below `hf_datasets/<dataset>/splits`.

    Attributes:
        files: one after the other.
        label: column of the labels, or the one label of all rows.
        where: column -> value of the rows that count.
    """

    files: tuple[str, ...]
    label: str = "label"
    where: Mapping[str, str] = field(default_factory=dict)

    def read(self, task: Task) -> pd.DataFrame:
        """References of the task."""
        folder = catalog.dataset_folder(task.dataset) / "splits"
        frame = pd.concat([pd.read_csv(folder / file, dtype=str) for file in self.files], ignore_index=True)
        for column, value in self.where.items():
            frame = frame[frame[column] == value]
        labels = frame[self.label] if self.label in frame else self.label
        return frame[["id", "patient_id", "split"]].assign(y_true=labels).reset_index(drop=True)


FLAT = {"modality": "2D"}
LABELS: Mapping[str, Shipped] = {
    "cardiacnet/asd": Shipped(("asd.csv",)),
    "cardiacnet/pah": Shipped(("pah.csv",)),
    "cardiacnet/view": Shipped(("asd.csv", "pah.csv"), label="A4C"),
    "hmc_qu/stemi": Shipped(("recordings.csv",)),
    "hmc_qu/view": Shipped(("recordings.csv",), label="view"),
    "segrwma/view": Shipped(("recordings.csv",), label="view", where=FLAT),
    **{
        f"segrwma/rwma_{view.lower()}": Shipped(("recordings.csv",), where={**FLAT, "view": view})
        for view in ("A2C", "A3C", "A4C")
    },
}


def shipped_references(task: Task) -> tuple[pd.DataFrame, str] | None:
    """References of a task without its raw data, and where they come from; None where nothing of them is known.

    Of published counts the ids and patients are empty: they say how often each class occurs, and not whose it is.
    """
    if task.name in LABELS:
        return LABELS[task.name].read(task), "shipped split"
    counts = pd.read_csv(COUNTS).query("task == @task.name")
    if counts.empty:
        return None
    rows = counts.loc[counts.index.repeat(counts["count"])]
    table = pd.DataFrame({"id": "", "patient_id": "", "split": rows["split"], "y_true": rows["label"]})
    return table.reset_index(drop=True), f"class counts of the {counts['source'].iloc[0]}"
