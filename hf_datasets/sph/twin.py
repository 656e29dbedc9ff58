"""Synthetic twin of SPH: two tables, and an HDF5 file for each record."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import MissingExtra
from cardiobench.data import ecg_labels
from cardiobench.data.phantom.ecg import EcgTruth, ecg_patients, ecg_signal
from cardiobench.data.twin_manifest import GENERATED

_FS = 500
_SECONDS = (10, 10, 10, 14, 22)
"""Lengths of the records, used in turn."""
_CONDUCTION = {"rbbb": "106", "lbbb": "104", "avb1": "82"}


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` patients with one to three records each: `metadata.csv`, `code.csv` and `records/`."""
    try:
        import h5py
    except ImportError as error:
        raise MissingExtra("writing HDF5 files", "models", "h5py") from error

    (out / "records").mkdir(parents=True, exist_ok=True)
    rows = []
    for number, record in enumerate(ecg_patients(patients, seed), start=1):
        name, seconds = f"A{number:05d}", _SECONDS[number % len(_SECONDS)]
        signal = ecg_signal(record.truth, fs=_FS, seconds=seconds)
        with h5py.File(out / "records" / f"{name}.h5", "w") as file:
            file.attrs["source"] = GENERATED
            file["ecg"] = signal.T.astype(np.float16)
        rows.append(
            {
                "ECG_ID": name,
                "AHA_Code": _statements(record.truth),
                "Patient_ID": f"S{int(record.patient_id[1:]):05d}",
                "Age": int(record.truth.age or 0),
                "Sex": record.truth.sex,
                "N": len(signal),
                "Date": str(pd.Timestamp("2019-08-01") + pd.Timedelta(number, "D"))[:10],
            }
        )
    pd.DataFrame(rows).to_csv(out / "metadata.csv", index=False)
    with Path(ecg_labels.__file__).with_name("aha_statements.csv").open(encoding="utf-8", newline="") as stream:
        codes = list(csv.reader(stream))
    pd.DataFrame(codes[1:], columns=["Category", "Code", "Description"]).to_csv(out / "code.csv", index=False)


def _statements(truth: EcgTruth) -> str:
    """Return the statements of a record as in the release, with modifiers after a plus."""
    statements = [_CONDUCTION[truth.kind]] if truth.cd else []
    if truth.af:
        statements.append("50+346" if truth.heart_rate > 100 else "50")
    elif not 60 <= truth.heart_rate <= 100:
        statements.append("22" if truth.heart_rate < 60 else "21")
    return ";".join(sorted(statements, key=lambda code: int(code.split("+")[0]))) or "1"
