"""Synthetic twin of CODE-15 %: the table of exams and the tracings in HDF5 parts."""

from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import MissingExtra
from cardiobench.data.phantom.ecg import EcgRecord, ecg_patients, ecg_signal
from cardiobench.data.twin_manifest import GENERATED

_FS, _SAMPLES, _SHORT = 400, 4096, 2934
_PARTS = 2
_FIRST_EXAM, _FIRST_PATIENT = 5_000_001, 5_000_001


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` patients with one to three exams each: `exams.csv` and two parts.

    Tracings are float32 in mV at 400 Hz, zero-padded on both sides to 4096 samples; two of three exams are 7.3 s long
    (2934 samples), the others 10.24 s. Each part ends with a row of zeros whose exam id is 0, as in the release.
    """
    try:
        import h5py
    except ImportError as error:
        raise MissingExtra("writing HDF5 files", "models", "h5py") from error

    records = ecg_patients(patients, seed)
    out.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame([_row(number, record, records) for number, record in enumerate(records)])
    table.to_csv(out / "exams.csv", index=False)
    for part in range(_PARTS):
        members = [number for number in range(len(records)) if number % _PARTS == part]
        with h5py.File(out / f"exams_part{part}.hdf5", "w") as file:
            file.attrs["source"] = GENERATED
            exams = [_FIRST_EXAM + number for number in members]
            file["exam_id"] = np.array([*exams, 0], np.int64)
            tracings = file.create_dataset("tracings", (len(members) + 1, _SAMPLES, 12), np.float32)
            for row, number in enumerate(members):
                tracings[row] = _padded(records[number], number)


def _padded(record: EcgRecord, number: int) -> np.ndarray:
    samples = _SAMPLES if number % 3 == 2 else _SHORT
    signal = ecg_signal(record.truth, fs=_FS, seconds=samples / _FS)
    before = (_SAMPLES - samples) // 2
    return np.pad(signal, ((before, _SAMPLES - samples - before), (0, 0)))


def _row(number: int, record: EcgRecord, records: list[EcgRecord]) -> dict:
    truth, rate, age = record.truth, record.truth.heart_rate, record.truth.age or 0.0
    first = number == 0 or records[number - 1].patient_id != record.patient_id
    sinus = not truth.af
    return {
        "exam_id": _FIRST_EXAM + number,
        "age": int(age),
        "is_male": truth.sex == "M",
        "nn_predicted_age": float(age + 4.0),
        "1dAVb": truth.kind == "avb1",
        "RBBB": truth.kind == "rbbb",
        "LBBB": truth.kind == "lbbb",
        "SB": sinus and rate < 60,
        "ST": sinus and rate > 100,
        "AF": truth.af,
        "patient_id": _FIRST_PATIENT + int(record.patient_id[1:]) - 1,
        "death": age > 85 if first else None,
        "timey": float(number % 7 + 0.5) if first else None,
        "normal_ecg": sinus and not truth.cd and 60 <= rate <= 100,
        "trace_file": f"exams_part{number % _PARTS}.hdf5",
    }
