"""Synthetic twin of CODE-test: tracings in one HDF5 file, and tables in the same order."""

from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import MissingExtra
from cardiobench.data.phantom.ecg import EcgTruth, ecg_patients, ecg_signal
from cardiobench.data.twin_manifest import GENERATED

READERS = ("gold_standard", "cardiologist1", "cardiologist2", "cardiology_residents", "emergency_residents", "medical_students", "dnn")  # fmt: skip
_FS, _SAMPLES = 400, 4096
_LENGTHS = (4000, 2800)
_ORDER = (0, 1, 2, 4, 5, 3, 6, 7, 8, 9, 10, 11)
"""Lead order of this release, which differs from CODE-15%: I II III aVL aVF aVR V1-V6."""


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` exams: `ecg_tracings.hdf5`, `attributes.csv` and the readings in `annotations`.

    Readers other than the gold standard miss or invent some findings.
    """
    try:
        import h5py
    except ImportError as error:
        raise MissingExtra("writing HDF5 files", "models", "h5py") from error

    truths = list({record.patient_id: record.truth for record in ecg_patients(patients, seed)}.values())
    (out / "annotations").mkdir(parents=True, exist_ok=True)
    with h5py.File(out / "ecg_tracings.hdf5", "w") as file:
        file.attrs["source"] = GENERATED
        tracings = file.create_dataset("tracings", (len(truths), _SAMPLES, 12), np.float32)
        for row, truth in enumerate(truths):
            tracings[row] = _padded(truth, _LENGTHS[row % 2])
    ages = [int(truth.age or 0) for truth in truths]
    pd.DataFrame({"age": ages, "sex": [truth.sex for truth in truths]}).to_csv(out / "attributes.csv", index=False)
    gold = pd.DataFrame([_findings(truth) for truth in truths]).astype(int)
    rng = np.random.default_rng(seed)
    for reader in READERS:
        wrong = rng.random(gold.shape) < (0.0 if reader == "gold_standard" else 0.02)
        (gold ^ wrong).astype(int).to_csv(out / "annotations" / f"{reader}.csv", index=False)


def _padded(truth: EcgTruth, samples: int) -> np.ndarray:
    before = (_SAMPLES - samples) // 2
    signal = ecg_signal(truth, fs=_FS, seconds=samples / _FS)[:, list(_ORDER)]
    return np.pad(signal, ((before, _SAMPLES - samples - before), (0, 0)))


def _findings(truth: EcgTruth) -> dict[str, bool]:
    sinus = not truth.af
    return {
        "1dAVb": truth.kind == "avb1",
        "RBBB": truth.kind == "rbbb",
        "LBBB": truth.kind == "lbbb",
        "SB": sinus and truth.heart_rate < 60,
        "AF": truth.af,
        "ST": sinus and truth.heart_rate > 100,
    }
