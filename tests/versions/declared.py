"""Sketches of the readers of declared datasets, and their builder, on small generated files."""

from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from PIL import Image

from cardiobench.data.declared.builder import declared_builder
from cardiobench.data.declared.dataset_file import FILE
from cardiobench.data.media.frame_folder import read_frame_folder
from cardiobench.data.media.types import LEADS, FrameSampling
from tests.data import ecg_files
from tests.versions.case import plain
from tests.versions.readers import picture

STATED = {"leads": list(LEADS), "sampling_rate": 100, "unit": "mV"}
FORMATS = {
    "csv": (ecg_files.write_csv, ".csv", {**STATED, "leads": None}),
    "npy": (ecg_files.write_npy, ".npy", STATED),
    "hdf5": (ecg_files.write_hdf5, ".h5", {}),
    "edf": (ecg_files.write_edf, ".edf", {}),
    "dicom": (ecg_files.write_dicom, ".dcm", {}),
}
TASKS = {
    "af": {"kind": "binary", "column": "af", "classes": ["0", "1"]},
    "rate": {"kind": "regression", "column": "rate", "unit": "bpm"},
    "both": {"kind": "multilabel", "columns": ["af", "block"], "unmeasured": True},
}


def signals() -> np.ndarray:
    """Return waves of two recordings, shape (2, 300, 12), in mV."""
    time = np.arange(300)[:, None] / 100
    return np.stack([np.sin(time * (2 + np.arange(12)) + shift).round(3) for shift in (0, 1)])


def declared(folder: Path, form: str) -> list:
    """Return rows and recordings of a dataset in one format."""
    write, suffix, stated = FORMATS[form]
    home = folder / f"own_{form}"
    home.mkdir()
    for name, signal in zip("ab", signals(), strict=True):
        write(home, name, signal)
    content = {
        "schema": 1, "name": home.name, "title": "t", "version": "1", "modality": "ecg", "redistributable": False,
        "recordings": {"folder": str(home), "format": form, **stated}, "labels": {"file": "labels.csv", "id": "id"},
        "sex": {"column": "sex", "values": {"f": "F"}}, "age": "age", "tasks": TASKS,
    }  # fmt: skip
    (home / FILE).write_text(yaml.safe_dump(content))
    ids = pd.DataFrame({"id": ["a", "b"], "patient_id": ["p", "q"], "split": ["train", "test"]})
    ids.assign(file=[f"a{suffix}", f"b{suffix}"]).to_csv(home / "splits.csv", index=False)
    labels = ids.assign(af=[0, 1], block=[1, None], rate=[60.5, 80], sex=["f", "x"], age=[50, 300])
    labels.drop(columns=["patient_id", "split"])[::-1].to_csv(home / "labels.csv", index=False)
    builder = declared_builder(home / FILE)
    frame = builder.table().frame
    read = [builder.recording(home, row).signal for row in frame.to_dict("records")]
    return [*read, frame["rate"].to_numpy(), frame["age"].to_numpy(), [len(cell) for cell in frame["both"]]]


def tables(folder: Path) -> list:
    """Return recordings in every format."""
    return [value for form in FORMATS for value in declared(folder, form)]


def frames(folder: Path) -> list:
    """Return the frames of a folder of images."""
    for number, content in enumerate(picture(4, 20, 30)):
        Image.fromarray(content).save(folder / f"frame{number + 8}.png")
    return [read_frame_folder(folder, FrameSampling(count=2, stride=2)).frames]


ECG = (
    "reader channels",
    "reader ecg tables",
    "reader ecg arrays",
    "reader edf",
    "reader dicom waveform",
    "builder declared",
)
CASES = {
    "declared dataset": plain(tables, *ECG),
    "reader frame folder": plain(frames, "reader frame folder", "reader still"),
}
