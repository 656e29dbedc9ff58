"""One dataset, opened: its rows, and its recordings one at a time, read when they are asked for."""

import os
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from cardiobench.data import catalog
from cardiobench.data.media import Clip, Ecg, FrameSampling
from cardiobench.data.rows import RowTable
from cardiobench.data.spec import DatasetSpec, Task


@dataclass(frozen=True)
class Source:
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
        """One line a recording."""
        return self.table.frame

    def recording(self, number: int, sampling: FrameSampling | None = None) -> Clip | Ecg:
        """Recording of that line of the frame; raises `BadMedia` naming the file."""
        return catalog.builder(self.spec.name).recording(self.raw, self.frame.iloc[number].to_dict(), sampling)

    def task_rows(self, task: Task) -> pd.DataFrame:
        """The lines that answer for the units of a task: labelled, in the task, and of a unit's lines the preferred ones."""
        frame = self.frame[self.frame[task.target].notna()]
        for column, accepted in task.where.items():
            frame = frame[frame[column].isin(accepted)]
        for column, preferred in task.prefer.items():
            liked = frame[column].isin(preferred)
            frame = frame[liked | ~liked.groupby(frame[task.scored_by]).transform("any")]
        return frame

    def references(self, task: Task) -> pd.DataFrame:
        """The truth a unit of scoring, all splits, those whose recordings are missing included."""
        from cardiobench.scoring.references import references_of

        return references_of(self.table.listed, task)

    def expected(self, task: Task, references: pd.DataFrame, split: str = "test") -> int:
        """Units of a split in the complete release, as far as this copy can tell.

        Rows that the copy's own tables lack count where a row is a unit; how many studies or patients they make is unknown.
        """
        here = int((references["split"] == split).sum())
        return here + (self.table.absent.get(split, 0) if task.scored_by == "id" else 0)

    def coverage(self) -> dict[str, int]:
        """What is not here: files named by the tables, and rows of the complete release that the tables lack."""
        return {"missing_files": len(self.table.missing), "absent_rows": sum(self.table.absent.values())}


def open_source(
    name: str, data_dir: str | os.PathLike | None = None, *, allow_missing: bool = False, need_media: bool = True
) -> Source:
    """Find a dataset: a folder made by `cardiobench prepare`, or the raw folder, whose tables are then read and checked.

    Args:
        name: folder of `hf_datasets/`.
        data_dir: the raw folder, or a folder that holds it under the dataset's name; else CARDIOBENCH_DATA.
        allow_missing: go on with an incomplete copy, which is counted.
        need_media: False where only labels are wanted.

    Raises:
        UnknownName: no such dataset.
        MissingData: not here, or not complete.
        BadData: its tables break the dataset's own rules.
    """
    from cardiobench.data.prepared import find_prepared, open_prepared

    builder = catalog.builder(name)
    folder = find_prepared(name, data_dir)
    if folder is not None:
        return open_prepared(builder.SPEC, folder)
    raw = builder.find_raw(data_dir)
    return Source(builder.SPEC, raw, builder.table(data_dir, allow_missing=allow_missing, need_media=need_media))
