"""Masks and landmarks of a prepared folder: one Parquet file per dense task, one row per labelled frame."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cardiobench.core.errors import BadData
from cardiobench.data.spec import Task
from cardiobench.tasks.dense_label import DenseLabel

LABELS = "labels"
"""Folder of the label files, next to the recordings."""
FRAMES = 64
"""Number of labelled frames in memory at a time."""
SCHEMA = pa.schema([
    *((name, pa.string()) for name in ("unit", "patient", "split", "recording", "phase", "view", "reason")),
    ("frame", pa.int64()),
    ("height", pa.int64()),
    ("width", pa.int64()),
    ("mask", pa.binary()),
    ("points", pa.list_(pa.float64())),
    ("spacing", pa.list_(pa.float64())),
])  # fmt: skip
"""Columns: `mask` is uint8, row by row; `points` is x and y of each point; `spacing` is height and width of a pixel in
mm."""


def label_path(folder: Path, task: Task) -> Path:
    """Return the file of a task's labels."""
    return folder / LABELS / f"{task.target}.parquet"


def write_labels(labels: Iterable[DenseLabel], path: Path, raw: Path | None) -> None:
    """Write the labels of a task, compressed; reasons name files relative to the raw folder.

    Args:
        labels: Labels in row order, including those without mask and points, which count as not covered.
        path: Path of the file.
        raw: Raw folder; None for generated data.
    """
    path.parent.mkdir(exist_ok=True)
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        rows = (_row(label, raw) for label in labels)
        while batch := list(islice(rows, FRAMES)):
            writer.write_table(pa.Table.from_pylist(batch, SCHEMA))


def read_labels(path: Path, task: Task, recordings: set[str]) -> Iterator[DenseLabel]:
    """Yield the labels of some recordings, in the order of the file.

    Raises:
        BadData: The file is damaged.
    """
    try:
        file = pq.ParquetFile(path)
        if not file.schema_arrow.equals(SCHEMA):
            raise ValueError(f"columns {', '.join(file.schema_arrow.names)}; expected {', '.join(SCHEMA.names)}")
        for batch in file.iter_batches(FRAMES):
            for row in batch.to_pylist():
                if row["recording"] in recordings:
                    yield _label(row, task)
    except (OSError, ValueError, TypeError, pa.ArrowException) as error:
        raise BadData(f"{path} has no readable labels ({error}). Prepare the dataset again.") from error


def _row(label: DenseLabel, raw: Path | None) -> dict[str, Any]:
    shape = (None, None) if label.mask is None else label.mask.shape
    return {
        "unit": label.unit,
        "patient": label.patient,
        "split": label.split,
        "recording": label.recording,
        "phase": label.phase,
        "view": label.view,
        "reason": label.reason if raw is None else label.reason.replace(f"{raw}/", ""),
        "frame": label.frame,
        "height": shape[0],
        "width": shape[1],
        "mask": None if label.mask is None else label.mask.tobytes(),
        "points": None if label.points is None else label.points.ravel(),
        "spacing": label.spacing,
    }


def _label(row: dict[str, Any], task: Task) -> DenseLabel:
    height, width, mask, points, spacing = (row.pop(name) for name in ("height", "width", "mask", "points", "spacing"))
    return DenseLabel(
        task=task.name,
        mask=None if mask is None else np.frombuffer(mask, np.uint8).reshape(height, width),
        points=None if points is None else np.array(points, np.float64).reshape(-1, 2),
        spacing=None if spacing is None else (spacing[0], spacing[1]),
        **row,
    )
