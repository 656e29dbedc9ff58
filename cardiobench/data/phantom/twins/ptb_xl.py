"""The synthetic twin of PTB-XL 1.0.3: WFDB records at 100 and 500 Hz, and the two tables."""

from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.data.phantom.ecg import EcgRecord, EcgTruth, ecg_patients, ecg_signal
from cardiobench.data.phantom.twins import ptb_xl_plus
from cardiobench.data.phantom.twins.splits import round_robin
from cardiobench.data.phantom.twins.wfdb import write_format16

LEADS = ("I", "II", "III", "AVR", "AVL", "AVF", "V1", "V2", "V3", "V4", "V5", "V6")
FIRST_PATIENT = 90_001
"""Patient numbers of the release end below 22,000."""

# Folds in the order in which patients are dealt: few patients fill test (10) and validation (9) first.
_FOLDS = (10, 9, 1, 2, 3, 4, 5, 6, 7, 8)

_STATEMENTS = (
    # statement, description, diagnostic, form, rhythm, superclass, subclass
    ("NORM", "normal ECG", 1, None, None, "NORM", "NORM"),
    ("LAFB", "left anterior fascicular block", 1, None, None, "CD", "LAFB/LPFB"),
    ("LPFB", "left posterior fascicular block", 1, None, None, "CD", "LAFB/LPFB"),
    ("IRBBB", "incomplete right bundle branch block", 1, None, None, "CD", "IRBBB"),
    ("CRBBB", "complete right bundle branch block", 1, None, None, "CD", "CRBBB"),
    ("ILBBB", "incomplete left bundle branch block", 1, None, None, "CD", "ILBBB"),
    ("CLBBB", "complete left bundle branch block", 1, None, None, "CD", "CLBBB"),
    ("IVCD", "non-specific intraventricular conduction disturbance (block)", 1, None, None, "CD", "IVCD"),
    ("WPW", "Wolf-Parkinson-White syndrome", 1, None, None, "CD", "WPW"),
    ("1AVB", "first degree AV block", 1, None, None, "CD", "_AVB"),
    ("2AVB", "second degree AV block", 1, None, None, "CD", "_AVB"),
    ("3AVB", "third degree AV block", 1, None, None, "CD", "_AVB"),
    ("ABQRS", "abnormal QRS", None, 1, None, None, None),
    ("SR", "sinus rhythm", None, None, 1, None, None),
    ("AFIB", "atrial fibrillation", None, None, 1, None, None),
    ("AFLT", "atrial flutter", None, None, 1, None, None),
    ("STACH", "sinus tachycardia", None, None, 1, None, None),
    ("SBRAD", "sinus bradycardia", None, None, 1, None, None),
    ("SARRH", "sinus arrhythmia", None, None, 1, None, None),
)
_STATEMENT_COLUMNS = (
    "description", "diagnostic", "form", "rhythm", "diagnostic_class", "diagnostic_subclass", "Statement Category",
    "SCP-ECG Statement Description", "AHA code", "aECG REFID", "CDISC Code", "DICOM Code",
)  # fmt: skip

_CONDUCTION = {"rbbb": "CRBBB", "lbbb": "CLBBB", "avb1": "1AVB"}
_REPORT = {
    "normal": "normale leitung",
    "rbbb": "rechtsschenkelblock",
    "lbbb": "linksschenkelblock",
    "avb1": "av-block i",
}


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` patients with one to three records each.

    Record numbers begin at 1, patient numbers at `FIRST_PATIENT`; the folds keep patients together. As in the release,
    an age of 90 and more is stored as 300, and some ages are missing.
    """
    from scipy.signal import resample_poly

    records = ecg_patients(patients, seed)
    table = pd.DataFrame([_row(number, record) for number, record in enumerate(records, start=1)])
    table["strat_fold"] = table["patient_id"].map(_folds(records))
    table["validated_by_human"] = table["strat_fold"].isin((9, 10))
    for row, record in zip(table.itertuples(), records, strict=True):
        fast = ecg_signal(record.truth, fs=500)
        for name, fs, signal in (
            (row.filename_lr, 100, resample_poly(fast, 1, 5, axis=0)),
            (row.filename_hr, 500, fast),
        ):
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_format16(path.parent, path.name, fs, signal, LEADS)
    table.to_csv(out / "ptbxl_database.csv", index=False)
    ptb_xl_plus.write(out / ptb_xl_plus.FOLDER, records)
    (out / "RECORDS").write_text("\n".join([*table["filename_lr"], *table["filename_hr"]]) + "\n")
    statements = pd.DataFrame([row[1:] for row in _STATEMENTS], index=[row[0] for row in _STATEMENTS])
    statements.columns = _STATEMENT_COLUMNS[: statements.shape[1]]
    statements.astype({name: "Float64" for name in ("diagnostic", "form", "rhythm")}).reindex(
        columns=_STATEMENT_COLUMNS
    ).to_csv(out / "scp_statements.csv")


def _patient_number(record: EcgRecord) -> float:
    return float(FIRST_PATIENT + int(record.patient_id[1:]) - 1)


def _folds(records: list[EcgRecord]) -> dict[float, int]:
    labels = {_patient_number(record): (record.truth.af, record.truth.cd) for record in records}
    return dict(zip(labels, round_robin(list(labels.values()), _FOLDS), strict=True))


def _row(number: int, record: EcgRecord) -> dict:
    truth, patient = record.truth, _patient_number(record)
    rng = np.random.default_rng([truth.seed, number])
    folder = f"{number // 1000 * 1000:05d}"
    return {
        "ecg_id": number,
        "patient_id": patient,
        "age": _age(truth, int(patient)),
        "sex": int(truth.sex == "F"),
        "height": float(np.round(rng.normal(170, 9))) if rng.random() < 0.3 else None,
        "weight": float(np.round(rng.normal(76, 13))) if rng.random() < 0.5 else None,
        "nurse": float(rng.integers(0, 12)),
        "site": float(rng.integers(0, 4)),
        "device": "PHANTOM",
        "recording_date": str(pd.Timestamp("1990-01-01") + pd.Timedelta(number, "h")),
        "report": f"{'vorhofflimmern' if truth.af else 'sinusrhythmus'} {_REPORT[truth.kind]}",
        "scp_codes": repr(_statements(truth)),
        "heart_axis": None,
        "infarction_stadium1": None,
        "infarction_stadium2": None,
        "validated_by": None,
        "second_opinion": False,
        "initial_autogenerated_report": False,
        "validated_by_human": False,
        "baseline_drift": " , I-V6,  " if rng.random() < 0.1 else None,
        "static_noise": None,
        "burst_noise": None,
        "electrodes_problems": None,
        "extra_beats": None,
        "pacemaker": None,
        "strat_fold": 0,
        "filename_lr": f"records100/{folder}/{number:05d}_lr",
        "filename_hr": f"records500/{folder}/{number:05d}_hr",
    }


def _age(truth: EcgTruth, patient: int) -> float | None:
    if patient % 10 == 4:
        return 300.0
    if patient % 25 == 9 or truth.age is None:
        return None
    return 300.0 if truth.age > 89 else truth.age


def _statements(truth: EcgTruth) -> dict[str, float]:
    """Return the statements and their likelihoods; a rhythm's likelihood is not given, which the release writes as 0."""
    statements = {} if truth.af else {"NORM": 100.0}
    if truth.cd:
        statements = {_CONDUCTION[truth.kind]: 100.0}
    if truth.af:
        rhythm = "AFIB"
    else:
        rhythm = "SBRAD" if truth.heart_rate < 60 else "STACH" if truth.heart_rate > 100 else "SR"
    return statements | {rhythm: 0.0}
