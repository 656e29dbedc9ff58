"""One dataset, opened: its rows, and its recordings one at a time, read when they are asked for."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from cardiobench.data import catalog
from cardiobench.data.media import Clip, Ecg, FrameSampling
from cardiobench.data.rows import RowTable
from cardiobench.data.spec import DatasetSpec, Task


@dataclass(frozen=True)
class OpenDataset:
    """A dataset with its raw folder.

    Attributes:
        spec: what is known of it.
        raw: its raw folder; None for generated data.
        table: its checked rows and the count of what is missing.
    """

    spec: DatasetSpec
    raw: Path | None
    table: RowTable

    @property
    def frame(self) -> pd.DataFrame:
        """The rows whose recording is here, one per recording."""
        return self.table.frame

    def recording(self, number: int, sampling: FrameSampling | None = None) -> Clip | Ecg:
        """Read the recording of row `number` of the frame; raises `BadMedia` naming the file."""
        return catalog.builder(self.spec.name).recording(self.raw, self.frame.iloc[number].to_dict(), sampling)

    def task_rows(self, task: Task) -> pd.DataFrame:
        """Return the rows that represent the units of a task: labelled, in the task, and of a unit's rows the preferred ones."""
        frame = self.frame[self.frame[task.target].notna()]
        for column, accepted in task.where.items():
            frame = frame[frame[column].isin(accepted)]
        for column, preferred in task.prefer.items():
            preferred_rows = frame[column].isin(preferred)
            frame = frame[preferred_rows | ~preferred_rows.groupby(frame[task.unit_column]).transform("any")]
        return frame

    def references(self, task: Task) -> pd.DataFrame:
        """Return the references of all splits, one row per unit, including units whose recordings are missing."""
        from cardiobench.data.references import references_of

        return references_of(self.table.listed, task)

    def expected(self, task: Task, references: pd.DataFrame, split: str = "test") -> int:
        """Return the number of units of a split in the complete release, as far as this copy can tell.

        Rows that the copy's own tables lack count where a row is a unit; how many studies or patients they make is unknown.
        """
        here = int((references["split"] == split).sum())
        return here + (self.table.absent.get(split, 0) if task.unit_column == "id" else 0)

    def coverage(self) -> dict[str, int]:
        """Count the missing files that the tables name, and the rows of the release that the tables lack."""
        return {"missing_files": len(self.table.missing), "absent_rows": sum(self.table.absent.values())}
