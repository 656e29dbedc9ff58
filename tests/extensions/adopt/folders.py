"""Folders of recordings in every format, as in a hospital, made from bundled ECGs or generated echo clips."""

from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.cli.main import main
from cardiobench.data.media.types import LEADS
from cardiobench.data.open import open_dataset
from tests.data.ecg_files import write_csv, write_dicom, write_edf, write_hdf5, write_npy, write_parquet
from tests.data.mixed import mixed_rows
from tests.data.vendor_files import write_muse


def adopt(folder: Path, labels: Path, out: Path, *flags: str, name: str = "mine") -> int:
    """Run the command; return its exit code."""
    return main(["adopt", str(folder), "--labels", str(labels), "--name", name, "--datasets-dir", str(out), *flags])


def bundled(count: int | None = None):
    """Return (rows, signals) of `mixed_rows` of the bundled ECGs, in mV at 100 Hz."""
    dataset, rows = open_dataset("ptb_xl_sample"), mixed_rows()
    rows = rows.head(count) if count else rows
    return rows.reset_index(drop=True), [dataset.recording(number).signal for number in rows.index]


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


def write_wfdb(folder: Path, name: str, signal: np.ndarray) -> None:
    """Write a record of 16-bit samples in uV with its header."""
    lines = [f"{name} {len(LEADS)} 100 {len(signal)}"]
    lines += [f"{name}.dat 16 1000(0)/mV 16 0 0 0 0 {lead}" for lead in LEADS]
    (folder / f"{name}.hea").write_text("\n".join(lines) + "\n")
    (folder / f"{name}.dat").write_bytes(np.rint(1000 * signal).astype("<i2").tobytes())


WRITERS = (write_wfdb, write_csv, write_edf, write_dicom, write_muse)
"""Writers of the formats of a hospital's folder; only CSV states neither rate nor unit."""


def write_hospital(folder: Path, count: int = 150) -> pd.DataFrame:
    """Write ECGs in five alternating formats, and return their German table, one row each.

    Above the number of bundled ECGs, these are written again at 0.9 of their amplitude, for other patients.
    """
    frame, signals = bundled()
    folder.mkdir()
    rows = []
    for number in range(count):
        row, signal = frame.iloc[number % len(frame)], signals[number % len(frame)]
        again = number >= len(frame)
        name = f"ekg{number:03}"
        WRITERS[number % len(WRITERS)](folder, name, 0.9 * signal if again else signal)
        rows.append(
            {
                "Datei": name,
                "Patientennummer": int(row["patient_id"]) + (10**6 if again else 0),
                "Geschlecht": {"F": "weiblich", "M": "männlich"}.get(row["sex"], ""),
                "Alter": row["age"],
                "Größe (cm)": f"{150 + number % 40},5",
                "Schenkelblock": "ja" if row["cd"] == "CD" else "nein",
                "Bemerkung": "",
            }
        )
    return pd.DataFrame(rows)
