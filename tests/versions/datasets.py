"""Sketches of rows and first recordings of every dataset: phantoms, bundled datasets, and twins of the others."""

from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.io import sha256_of_json
from cardiobench.data import catalog, open_dataset
from cardiobench.data.media import Clip, FrameSampling
from cardiobench.data.twin import has_twin, write_twin
from tests.versions.case import Case

PATIENTS = 4
ROUNDED = 0.01
"""Tolerance for recordings of integers, which differ by one in a few places depending on the last digits."""


def of_table(frame: pd.DataFrame) -> list:
    """Return the columns of a table as numbers, with texts as digests."""
    found = []
    for name in sorted(frame.columns):
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            found.append(column.to_numpy(np.float64))
        else:
            digest = sha256_of_json([None if value is None else str(value) for value in column])
            found.append([int(digest[at : at + 4], 16) + 1 for at in range(0, 16, 4)])
    return found


def case(name: str) -> Case:
    """Return the case of a dataset: rows, references, two masks or points, and the first recording."""

    def make(folder: Path) -> tuple[list, set[str]]:
        raw = folder / name
        if has_twin(name):
            write_twin(name, raw, patients=PATIENTS)
        dataset = open_dataset(name, raw if has_twin(name) else None, allow_missing=True)
        found = of_table(dataset.frame.drop(columns=["fingerprint", "hint"]))
        for task in dataset.spec.tasks:
            found += of_table(dataset.references(task)[["id", "patient_id", "split", "y_true"]])
            if task.dense:
                labels = list(dataset.dense_labels(task))[:2]
                found += [label.points if label.mask is None else label.mask for label in labels]
        recording = dataset.recording(0, FrameSampling(count=3))
        found += (
            [recording.frames, recording.n_frames] if isinstance(recording, Clip) else [recording.signal, recording.fs]
        )
        return found, set()

    drawn = ("phantoms",) if has_twin(name) or catalog.spec(name).generated else ()
    readers = READERS[catalog.spec(name).media]
    return Case(make, (f"dataset {name}", *drawn, *readers), slow=has_twin(name), tolerance=ROUNDED)


READERS = {
    "video": ("reader video", "reader dicom", "reader nifti", "reader still"),
    "image": ("reader still", "reader dicom", "reader nifti"),
    "ecg": ("reader ecg", "reader wfdb", "reader hdf5", "reader npy"),
}
CASES = {f"dataset {name}": case(name) for name in catalog.list_datasets()}
