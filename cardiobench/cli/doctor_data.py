"""Check a dataset or a file of embeddings before a run."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cardiobench.core.errors import BadMedia, counted, first_n
from cardiobench.data import catalog
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.examine import Examined, Examiner, examine
from cardiobench.data.media.types import Ecg, FrameSampling
from cardiobench.data.open import open_dataset
from cardiobench.data.spec import Task
from cardiobench.embeddings.finding import Finding
from cardiobench.embeddings.split_audit import audit_splits
from cardiobench.embeddings.vector_files import read_vectors
from cardiobench.embeddings.vector_table import VectorTable

COLUMNS = ("", "what", "found", "expected")
SAMPLE = 20
"""Number of recordings read, evenly spaced; `cardiobench audit` reads all."""

NONE = "none: adopted without recordings, for answers and vectors made elsewhere"


@dataclass(frozen=True)
class DatasetExamination:
    """What was found about a dataset.

    Attributes:
        findings: Findings in order.
        source: The dataset.
        examined: Remarks on the recordings that were read.
    """

    findings: list[Finding]
    source: OpenDataset
    examined: Examined


def examine_dataset(name: str, data_dir: Path | None = None) -> DatasetExamination:
    """Check a local dataset: completeness, splits, labels and some of its recordings.

    Raises:
        UnknownName: There is no such dataset.
        MissingData: The data is not available locally.
    """
    media = catalog.builder(name).has_recordings()
    dataset = open_dataset(name, data_dir, allow_missing=True, need_media=media)
    spec, coverage = dataset.spec, dataset.coverage()
    lacking = {key: count for key, count in coverage.items() if count}
    counts = dataset.frame["split"].value_counts()
    shared = dataset.frame.groupby("patient_id")["split"].nunique()
    several = list(shared[shared > 1].index)
    lines = [
        Finding("dataset", f"{spec.title}, version {spec.version}, {spec.modality}"),
        Finding("licence", f"{spec.licence}; {'may' if spec.redistributable else 'may not'} be redistributed"),
        Finding("folder", "generated" if spec.generated else str(dataset.raw) if media else NONE),
        Finding(
            "files and rows",
            ", ".join(f"{count} {key.replace('_', ' ')}" for key, count in lacking.items()) or "complete",
            "complete",
            good=not lacking,
        ),
        Finding(
            "recordings", ", ".join(f"{counts.get(split, 0)} {split}" for split in spec.splits), "some in each split"
        ),
        Finding("patients in several splits", first_n(several) if several else "none", "none", good=not several),
        *(_task_finding(dataset, task) for task in spec.tasks),
    ]
    if not media:
        return DatasetExamination(lines, dataset, Examiner(spec.media).result())
    places = np.unique(np.linspace(0, len(dataset.frame) - 1, SAMPLE).round().astype(int)).tolist()
    every = FrameSampling(count=None)
    examined = examine(
        list(dataset.frame["id"].iloc[places]), lambda place: dataset.recording(places[place], every), spec.media
    )
    return DatasetExamination([*lines, _first_recording(dataset), *_remarked(examined)], dataset, examined)


def _task_finding(dataset: OpenDataset, task: Task) -> Finding:
    rows = dataset.task_rows(task)
    counts = rows["split"].value_counts()
    labelled = ", ".join(f"{counts.get(split, 0)} {split}" for split in dataset.spec.splits)
    kind = f"{task.kind}, {', '.join(task.classes)}" if task.classes else f"{task.kind}, {task.unit}"
    return Finding(f"task {task.name}", f"labelled recordings: {labelled}", kind, good=counts.get("test", 0) > 0)


def _first_recording(dataset: OpenDataset) -> Finding:
    what = f"recording {dataset.frame['id'].iloc[0]}"
    try:
        recording = dataset.recording(0)
    except BadMedia as error:
        return Finding(what, str(error), "readable", good=False)
    if isinstance(recording, Ecg):
        peak = float(np.abs(recording.signal).max())
        found = f"signal {recording.signal.shape} at {recording.fs:g} Hz, at most {peak:.3g} mV"
        return Finding(what, found, "(samples, 12) in mV")
    return Finding(what, f"frames {recording.frames.shape} {recording.frames.dtype}", "(T, H, W, 3) uint8")


def _remarked(examined: Examined) -> Iterator[Finding]:
    """Yield a finding for each remark on the recordings that were read, or one that there is none."""
    unreadable = examined.unreadable
    total = examined.count + len(unreadable)
    if unreadable:
        yield Finding(
            f"unreadable among {total} recordings", f"{len(unreadable)}: {unreadable[0][1]}", "none", good=False
        )
    for check, remarked in examined.by_check().items():
        if remarked:
            shown = first_n([f"{name} ({remark.detail})" if remark.detail else name for name, remark in remarked], 3)
            yield Finding(f"{check} among {total} recordings", f"{len(remarked)}: {shown}", "none", good=False)
    if not examined.remarks and not unreadable:
        yield Finding(f"remarks on {total} recordings", "none", "none; `cardiobench audit` reads all recordings")


def examine_embeddings(file: Path, dataset: str | None = None, data_dir: Path | None = None) -> list[Finding]:
    """Check a file of embeddings and its match with a dataset.

    Args:
        file: Path of a Parquet, NPZ or CSV file.
        dataset: Name of the dataset; None to check only the file.
        data_dir: Folder with the raw tables of the dataset.

    Raises:
        MissingData: The file or the dataset is not available.
        BadData: The file does not contain valid embeddings.
    """
    table = read_vectors(file)
    lengths = np.diff(table.offsets)
    low, high = int(lengths.min()), int(lengths.max())
    lines = [
        Finding("recordings", f"{counted(len(table.keys), 'id')}, {counted(len(table.vectors), 'vector')}"),
        Finding("vectors", f"{table.dim} numbers, {table.vectors.dtype}", "one width, float16 or float32"),
        Finding("vectors of a recording", str(low) if low == high else f"{low} to {high}", "parts in order"),
        Finding("datasets", ", ".join(table.datasets) or "not named", "a column `dataset`, for several"),
        Finding("pooling", table.pooling or "not stated: mean", "mean or mean_l2"),
        Finding("digest", table.digest[:12]),
        *(Finding("fault", problem, "none", good=False) for problem in table.problems),
    ]
    if dataset is not None:
        catalog.spec(dataset)
        lines += _fit(table, open_dataset(dataset, data_dir, allow_missing=True, need_media=False))
    return lines


def _fit(table: VectorTable, dataset: OpenDataset) -> list[Finding]:
    name, listed = dataset.spec.name, dataset.table.listed
    of, lines = table.of(name), []
    for task in dataset.spec.tasks:
        needed = list(dataset.task_rows(task)["id"])
        found = int((of.places.get_indexer(np.asarray(needed, dtype=object)) >= 0).sum())
        lines.append(
            Finding(f"task {task.name}", f"{found} of {len(needed)} recordings", "all", good=found == len(needed))
        )
    foreign = of.places[~of.places.isin(listed["id"])]
    shown = f"{len(foreign)}: {first_n(foreign)}" if len(foreign) else "none"
    lines.append(Finding(f"ids that are none of {name}", shown, "none", good=not len(foreign)))
    signs = [] if table.problems else list(audit_splits(of, list(listed["id"]), list(listed["split"]), name))
    lines += [Finding("scaling", sign, "by the training rows", good=False) for sign in signs]
    return lines
