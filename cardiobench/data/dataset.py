"""An opened dataset: its rows, and its recordings, which are read on demand."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from pathlib import Path, PurePosixPath
from typing import Any, Self

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadData, BadMedia
from cardiobench.core.io import sha256_of_json
from cardiobench.core.tables import TEXT
from cardiobench.data import catalog
from cardiobench.data.dense import check_inside
from cardiobench.data.file_index import FileIndex, companions
from cardiobench.data.media import METADATA, Clip, Ecg, FrameSampling
from cardiobench.data.media.content import digested
from cardiobench.data.media.overlays import mask_overlays
from cardiobench.data.rows import RowTable
from cardiobench.data.spec import ROWS, DatasetSpec, Task
from cardiobench.tasks.dense_label import DenseLabel

ONE_FRAME = FrameSampling(count=1, start="first")
"""Sampling that reads the bytes of a clip and decodes little."""


@dataclass(frozen=True)
class OpenDataset:
    """A dataset with its raw folder.

    Attributes:
        spec: Spec of the dataset.
        raw: Raw folder; None for generated data.
        table: Checked rows and the counts of missing ones.
        masked: Whether text and graphics in videos are blackened (`media.overlays`).
        labels_only: Whether only labels are needed, as for embeddings from elsewhere, so that recordings may be
            missing.
    """

    spec: DatasetSpec
    raw: Path | None
    table: RowTable
    masked: bool = False
    labels_only: bool = False

    @property
    def generated(self) -> bool:
        """Return whether the recordings were generated: a phantom, or a synthetic twin of a release."""
        return self.spec.generated or self.table.twin

    @property
    def facts(self) -> dict[str, Any]:
        """Version and content, as stamped into results."""
        digest = {} if self.labels_only else {"digest": self.table.digest}
        return {
            "name": self.spec.name,
            "version": self.spec.version,
            **digest,
            "twin": self.table.twin,
            **({"left_out": self.left_out} if self.left_out else {}),
            **self.spec.marks,
        }

    @property
    def left_out(self) -> int:
        """Number of rows of the user's labels that were left out of a declared dataset when it was adopted."""
        return sum(map(len, self.table.excluded.values())) if self.spec.local else 0

    @property
    def frame(self) -> pd.DataFrame:
        """Rows whose recording is available, one per recording."""
        return self.table.frame

    @property
    def duplicates(self) -> list[tuple[str, ...]]:
        """Known groups of ids with the same recording, as far as they are available."""
        if not self.spec.duplicates:
            return []
        ids = set(self.frame["id"])
        groups = (tuple(name for name in group if name in ids) for group in self.spec.duplicates)
        return [group for group in groups if len(group) > 1]

    def without_recordings(self) -> Self:
        """Return the dataset for uses that need only its labels; missing recordings are then ignored.

        The digest includes file sizes, so it is empty in this case.
        """
        table = self.table
        if len(table.missing) == len(table.missing_tables) or len(table.frame) != len(table.listed):
            return self
        return replace(self, labels_only=True, table=replace(table, missing=table.missing_tables))

    def with_masked_overlays(self) -> Self:
        """Return the dataset with text and graphics in its videos blackened, with another digest; unchanged if it has no videos."""
        if self.spec.media != "video":
            return self
        digest = sha256_of_json([self.table.digest, "masked overlays"])[:16]
        return replace(self, masked=True, table=replace(self.table, digest=digest))

    def without_duplicates(self) -> Self:
        """Return the dataset with one recording of each group of duplicates, preferring test over train."""
        splits = self.frame.set_index("id")["split"]
        dropped = tuple(
            name
            for group in self.duplicates
            for name in sorted(group, key=lambda name: self.spec.splits.index(splits[name]))[:-1]
        )
        if not dropped:
            return self
        table = self.table
        reason = "byte-identical to another recording"
        return replace(
            self,
            table=replace(
                table,
                listed=table.listed[~table.listed["id"].isin(dropped)].reset_index(drop=True),
                frame=table.frame[~table.frame["id"].isin(dropped)].reset_index(drop=True),
                excluded={**table.excluded, reason: dropped},
                digest=sha256_of_json([table.digest, dropped])[:16],
            ),
        )

    def recording(self, number: int, sampling: FrameSampling | None = None) -> Clip | Ecg:
        """Read the recording of row `number` of the frame; raises `BadMedia` with the name of the file."""
        row = self.frame.iloc[number].to_dict()
        recording = self._read(row, sampling)
        if self.masked and isinstance(recording, Clip):
            recording = mask_overlays(recording, row["id"])
        return replace(recording, facts=_facts(row))

    def content(self, number: int) -> str:
        """Return the digest of the bytes of a recording and of the facts beside them; empty if it cannot be read or was generated."""
        try:
            return self._read(self.frame.iloc[number].to_dict(), ONE_FRAME).content
        except (BadMedia, MemoryError):  # Encoding the recording reports the reason.
            return ""

    def _read(self, row: Mapping[str, Any], sampling: FrameSampling | None, key_frame: int | None = None) -> Clip | Ecg:
        """Read the recording of a row with the digest of its content, which depends neither on the sampling nor on the key frame given."""
        with digested() as content:
            recording = self._decode(row if key_frame is None else {**row, "key_frame": key_frame}, sampling)
        if not content.noted and self.raw is not None:  # Readers from elsewhere note no bytes.
            for path in (self.raw / name for name in companions(row["media"])):
                if path.is_file():
                    with path.open("rb") as stream:
                        content.add_stream(stream, path.stat().st_size)
        return replace(recording, content=content.digest(self._beside(row)))

    def _beside(self, row: Mapping[str, Any]) -> str:
        """Return the facts beside the bytes of a recording that affect the input of an encoder."""
        key_frame = row.get("key_frame", math.nan)
        numbers = {name: float(fact) if isinstance(fact, Real) else str(fact) for name, fact in _facts(row).items()}
        return json.dumps([self._generator, None if pd.isna(key_frame) else float(key_frame), numbers], sort_keys=True)

    @cached_property
    def _generator(self) -> str:
        return catalog.builder(self.spec.name).generator()

    def _decode(self, row: Mapping[str, Any], sampling: FrameSampling | None) -> Clip | Ecg:
        """Read the recording of a row."""
        return catalog.builder(self.spec.name).recording(self.raw, row, sampling)

    def dense_labels(self, task: Task, rows: pd.DataFrame | None = None) -> Iterator[DenseLabel]:
        """Yield the labels of a dense task, in the order of the rows; unusable labels have a reason.

        Args:
            task: Segmentation or landmarks.
            rows: Subset of `task_rows` to read labels of; all by default.
        """
        rows = self.task_rows(task) if rows is None else rows
        yield from catalog.builder(self.spec.name).dense_labels(self.raw, task, rows)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.frame["id"])}

    def labelled_frame(self, label: DenseLabel, sampling: FrameSampling | None = None) -> Clip:
        """Read the frame of a dense label as a clip of one frame, or the clip around it.

        Args:
            label: Label of the frame.
            sampling: Count and stride of the frames. The labelled one is at `count // 2`; beyond an end of the
                recording its outermost frame is repeated.

        Raises:
            BadMedia: The frame cannot be read, is beyond the end of the recording, differs in size from the mask, or a
                point lies outside it.
        """
        count, stride = (sampling.count or 1, sampling.stride) if sampling else (1, 1)
        before = min(count // 2, label.frame // stride)
        row = self.frame.iloc[self._numbers[label.recording]].to_dict()
        read = replace(sampling or FrameSampling(), count=count - count // 2 + before, stride=stride, start="key_frame")
        clip, name = self._read(row, read, label.frame - before * stride), row.get("media", label.recording)
        if not isinstance(clip, Clip) or label.frame not in clip.indices:
            raise BadMedia(
                f"{name} has no frame {label.frame}, for which {label.task} has a label. Download both again."
            )
        size = clip.frames.shape[1:3]
        wanted = label.size if label.mask is None else label.mask.shape
        if wanted is not None and wanted != size:
            raise BadMedia(
                f"{name} has frames of {size[0]} x {size[1]} pixels, and the mask of frame {label.frame} has "
                f"{wanted[0]} x {wanted[1]}. Download both again."
            )
        if label.points is not None:
            try:
                check_inside(label.points, size, f"{name}, frame {label.frame}")
            except BadData as error:  # The image size is only known after reading the recording.
                raise BadMedia(str(error)) from error
        places = (np.arange(count) - count // 2 + before).clip(0, len(clip.frames) - 1)
        return replace(clip, frames=clip.frames[places], indices=clip.indices[places])

    def task_rows(self, task: Task) -> pd.DataFrame:
        """Return the labelled rows of a task that represent its units."""
        labelled = self.frame[task.target].notna()
        frame = self.frame.copy(deep=False) if labelled.all() else self.frame[labelled]
        for column, accepted in task.where.items():
            frame = frame[frame[column].isin(accepted)]
        return frame

    def references(self, task: Task) -> pd.DataFrame:
        """Return the references of all splits, one row per unit, including units whose recordings are missing."""
        from cardiobench.data.references import references_of

        return references_of(self.table.listed, task)

    def expected(self, task: Task, references: pd.DataFrame, split: str = "test") -> int:
        """Return the number of units of a split in the complete release, from the spec or estimated from this copy."""
        return int((references["split"] == split).sum()) + self._absent_units(task, references, (split,))

    def absent_units(self, task: Task) -> int:
        """Estimate the number of units of a task, over all splits, that are missing from this copy's tables.

        Missing rows are assumed to form as many units per row as the available rows, and at least one. Rows whose label
        is in a missing file count as well.
        """
        return self._absent_units(task, self.references(task), self.spec.splits)

    def _absent_units(self, task: Task, references: pd.DataFrame, splits: Sequence[str]) -> int:
        count = 0
        listed = self.table.listed
        for name in splits:
            rows = int((listed["split"] == name).sum())
            units = int((references["split"] == name).sum())
            absent = self.table.absent.get(name, 0)
            known = task.expected.get(ROWS, {}).get(name) if task.unit_column == "id" else None
            if absent > 0 and known is not None:
                count += max(1, known - units)
            elif absent > 0:
                count += max(1, math.ceil(absent * units / rows)) if rows else absent
        unlabelled = listed[listed[task.target].isna()]
        unlabelled = unlabelled[unlabelled["split"].isin(splits)]
        unlabelled = unlabelled[~unlabelled["id"].isin(self.frame["id"]) | self._lacks_label_file(unlabelled)]
        for column, accepted in task.where.items():
            unlabelled = unlabelled[unlabelled[column].isin(accepted)]
        return count + int((~unlabelled[task.unit_column].drop_duplicates().isin(references["id"])).sum())

    def _lacks_label_file(self, rows: pd.DataFrame) -> np.ndarray:
        """Return which rows have their labels in a separate file that is missing. The array is bool (n,)."""
        if self.raw is None or not self.spec.label_file:
            return np.zeros(len(rows), dtype=bool)
        index, name = FileIndex(self.raw), self.spec.label_file
        media = (PurePosixPath(path) for path in rows["media"])
        files = (path.with_name(name.format(stem=path.stem)).as_posix() for path in media)
        return np.fromiter((index.find(file) is None for file in files), bool, len(rows))

    def unread_units(self, task: Task) -> int:
        """Count the units of a task, over all splits, without any available recording."""
        return len(set(self.references(task)["id"]) - set(self.task_rows(task)[task.unit_column].astype(str)))

    def with_fingerprints(self, numbers: np.ndarray, fingerprints: pd.Series) -> Self:
        """Return the dataset with other fingerprints of some rows, in the order of `numbers`."""
        frame = self.frame.copy(deep=False)
        texts = frame["fingerprint"].to_numpy(dtype=object).copy()
        texts[numbers] = fingerprints.to_numpy(dtype=object)
        frame["fingerprint"] = pd.array(texts, TEXT)
        return replace(self, table=replace(self.table, frame=frame))

    def coverage(self) -> dict[str, int]:
        """Count the missing files named in the tables, and the rows of the release missing from the tables."""
        return {"missing_files": len(self.table.missing), "absent_rows": sum(self.table.absent.values())}


def _facts(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known facts about patient and machine in a row."""
    return {name: row[name] for name in METADATA if name in row and not pd.isna(row[name])}
