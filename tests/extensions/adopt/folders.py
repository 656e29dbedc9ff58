"""Folders of recordings in every format, as in a hospital, made from bundled ECGs or generated echo clips."""

from pathlib import Path

import pandas as pd

from cardiobench.cli.main import main
from cardiobench.data.media.types import LEADS
from cardiobench.data.open import open_dataset
from tests.data.ecg_files import write_csv, write_dicom, write_edf, write_hdf5, write_npy, write_parquet
from tests.data.vendor_files import write_muse


def adopt(folder: Path, labels: Path, out: Path, *flags: str, name: str = "mine") -> int:
    """Run the command; return its exit code."""
    return main(["adopt", str(folder), "--labels", str(labels), "--name", name, "--out", str(out), *flags])


def bundled(count: int | None = None):
    """Return (rows, signals) of the bundled ECGs, in mV at 100 Hz."""
    dataset = open_dataset("ptb_xl_sample")
    frame = dataset.frame.head(count) if count else dataset.frame
    return frame, [dataset.recording(number).signal for number in range(len(frame))]


def write_labels(frame: pd.DataFrame, path: Path, **columns) -> Path:
    """Write id, patient, split, file, label, sex and age in the style of a hospital's table."""
    table = pd.DataFrame(
        {
            "id": frame["id"],
            "patient_id": frame["patient_id"],
            "split": frame["split"],
            "file": frame["id"],
            "cd": frame["cd"],
            "sex": frame["sex"],
            "age": frame["age"],
            **columns,
        }
    )
    table.to_csv(path, index=False)
    return path


UNIT, RATE, ORDER = ("--unit", "mV"), ("--sampling-rate", "100"), ("--leads", ",".join(LEADS))
FORMATS = {
    "npy": (write_npy, (*UNIT, *RATE, *ORDER), 0.0),
    "csv": (write_csv, (*UNIT, *RATE), 0.0),
    "parquet": (write_parquet, (*UNIT, *RATE), 0.0),
    "hdf5": (write_hdf5, (), 0.0),
    "edf": (write_edf, (), 5e-4),
    "dicom": (write_dicom, (), 5e-4),
    "xml": (write_muse, (), 0.01),
}
"""Mapping from format to writer, extra flags, and largest error in mV.

EDF and DICOM store whole microvolts, MUSE steps of 4.88 uV, from two of which other limb leads are computed.
"""
