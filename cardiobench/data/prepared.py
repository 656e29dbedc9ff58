"""Datasets written by `cardiobench prepare`, opened like raw folders."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from cardiobench.core.errors import BadData, BadMedia, CardioBenchError, MissingData
from cardiobench.core.tables import read_table
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.fingerprints import fingerprints
from cardiobench.data.folders import candidate_dirs
from cardiobench.data.hints import mixed
from cardiobench.data.media import Clip, Ecg, FrameSampling, decode
from cardiobench.data.prepared_labels import label_path, read_labels
from cardiobench.data.prepared_note import LEFT_OUT, NOTE, check_files, is_note_of, read_note
from cardiobench.data.rows import RowTable, check_rows
from cardiobench.data.spec import DatasetSpec, Task
from cardiobench.tasks.dense_label import DenseLabel


def find_prepared(name: str, data_dir: str | os.PathLike | None) -> Path | None:
    """Return the prepared folder of a dataset below the candidate folders of its data; None if there is none.

    Without a given folder, the last candidate is the one from which `load_dataset` reads in the working directory.
    """
    folders = candidate_dirs(name, data_dir)
    for folder in folders if data_dir else [*folders, Path.cwd()]:
        for candidate in (folder, folder / "cardiobench" / name):
            note = candidate / NOTE
            if note.is_file() and is_note_of(note, name):
                return candidate
    return None


@dataclass(frozen=True)
class PreparedDataset(OpenDataset):
    """A dataset in a prepared folder, which is also its `raw` folder."""

    raw: Path

    @property
    def facts(self) -> dict[str, Any]:
        """Version and content, and the commit if the folder comes from the Hub."""
        from_hub = self.raw.parent.name == "snapshots"
        return super().facts | ({"hub_commit": self.raw.name} if from_hub else {})

    @cached_property
    def dataset(self) -> Any:
        """Return all splits, concatenated, as a `datasets.Dataset`."""
        return _joined(self.raw, self.spec)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.dataset["id"])}

    def dense_labels(self, task: Task, rows: pd.DataFrame | None = None) -> Iterator[DenseLabel]:
        """Yield the labels stored by `prepare`.

        Raises:
            MissingData: The folder was made before `prepare` stored labels.
            BadData: The labels are damaged.
        """
        path = label_path(self.raw, task)
        if not path.is_file():
            raise MissingData(
                f"{self.raw} has no labels of {task.name} ({path.relative_to(self.raw)}). Prepare the dataset again."
            )
        rows = self.task_rows(task) if rows is None else rows
        yield from read_labels(path, task, set(rows["id"]))

    def _lacks_label_file(self, rows: pd.DataFrame) -> np.ndarray:
        """Return False for all rows, because `prepare` has already read labels in separate files."""
        return np.zeros(len(rows), dtype=bool)

    def _decode(self, row: Mapping[str, Any], sampling: FrameSampling | None) -> Clip | Ecg:
        stored = self.dataset[self._places[row["id"]]]
        media = stored.get("video") or stored.get("image")
        if stored.get("ecg") is None and (not isinstance(media, Mapping) or media.get("bytes") is None):
            # A path could name any file of this machine.
            raise BadMedia(f"{row['id']}: {self.raw} does not contain this recording. Prepare the dataset again.")
        return decode({**stored, "key_frame": row.get("key_frame")}, sampling)


def read_left_out(folder: Path) -> pd.DataFrame:
    """Return the rows of the release that are missing from a prepared folder.

    Raises:
        BadData: The table of these rows cannot be read.
    """
    path = folder / LEFT_OUT
    if not os.path.lexists(path):
        return pd.DataFrame(columns=["id", "split"])
    try:
        table = read_table(path)
    except CardioBenchError as error:
        raise BadData(f"{error} Prepare the dataset again.") from None
    if not {"id", "split"} <= set(table):
        raise BadData(f"{path} has no columns id and split. Prepare the dataset again.")
    return table


def open_prepared(spec: DatasetSpec, folder: Path, *, verify: bool = False) -> PreparedDataset:
    """Open a prepared folder.

    Args:
        spec: The dataset.
        folder: Folder written by `prepare`.
        verify: Whether to read every file and recording to check digests and fingerprints, even if sizes and times are
            unchanged.

    Raises:
        BadData: The folder was made by another version of the dataset, or a file was changed.
    """
    note = read_note(folder, spec)
    check_files(folder, note, spec, verify=verify)
    dataset = _joined(folder, spec)
    media = [name for name in ("video", "image", "ecg") if name in dataset.features]
    frame = dataset.remove_columns(media).to_pandas()
    for task in {task.target: task for task in spec.tasks if task.classes}.values():
        frame[task.target] = task.rules.restored_labels(frame, task)
    check_rows(spec, frame)
    left_out = read_left_out(folder)
    listed = pd.concat([frame, left_out], ignore_index=True) if len(left_out) else frame
    frame["fingerprint"] = fingerprints(sorted((folder / "data").glob("*.parquet")), frame["id"], verify=verify)
    content = pd.util.hash_array(frame["fingerprint"].to_numpy(dtype=object), categorize=False)
    frame["hint"] = mixed(content, np.zeros_like(content))  # The fingerprint is already that of the content.
    table = RowTable(
        listed=listed,
        frame=frame,
        missing=(*note.missing, *note.unreadable),
        absent=note.absent,
        excluded={},
        digest=note.digest,
        twin=note.twin,
    )
    return PreparedDataset(spec, folder, table)


def load_prepared(folder: Path, spec: DatasetSpec) -> Any:
    """Return the splits of a prepared folder as a `datasets.DatasetDict`, after checking its files.

    Raises:
        BadData: The folder was made by another version of the dataset, or a file was changed.
    """
    check_files(folder, read_note(folder, spec), spec)
    return _load_parquet(folder, spec)


def _load_parquet(folder: Path, spec: DatasetSpec) -> Any:
    import datasets

    shards = shards_by_split(spec, (f"{folder}/data/{path.name}" for path in (folder / "data").glob("*.parquet")))
    try:
        return datasets.load_dataset("parquet", data_files=shards)
    except (datasets.exceptions.DatasetsError, pa.ArrowException, OSError, ValueError) as error:
        raise BadData(
            f"{folder / 'data'} holds incomplete Parquet files ({error}). Prepare the dataset again."
        ) from error


def shards_by_split(spec: DatasetSpec, files: Iterable[str]) -> dict[str, list[str]]:
    """Return a mapping from split to its Parquet files, in order; splits without any are left out."""
    files = sorted(files)
    shards = {split: [file for file in files if fnmatch(file, f"*/data/*{split}-*.parquet")] for split in spec.splits}
    return {split: names for split, names in shards.items() if names}


def _joined(folder: Path, spec: DatasetSpec) -> Any:
    import datasets

    return datasets.concatenate_datasets(list(_load_parquet(folder, spec).values()))
