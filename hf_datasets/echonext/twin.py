"""Synthetic twin of EchoNext 1.1.0: the table of ECGs with echo findings, and one array of z-scores per split."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.data import catalog
from cardiobench.data.phantom.ecg import EcgRecord, ecg_patients, ecg_signal
from cardiobench.data.phantom.splits import round_robin
from cardiobench.data.twin_manifest import GENERATED

_RELEASE = sys.modules[catalog.builder("echonext").__module__]  # Builders are found by file, not by import.
SPLITS = ("test", "train", "val", "train", "train")
"""Splits in the order in which patients are assigned."""
SETTINGS = ("inpatient", "emergency", "outpatient", "procedural")
ETHNICITIES = ("Black", "Hispanic", "Other", "White")
_VALVES = ("aortic_stenosis", "aortic_regurgitation", "mitral_regurgitation", "tricuspid_regurgitation", "pulmonary_regurgitation")  # fmt: skip
_SEVERITY = ("none", "mild", "moderate", "severe")
_FUNCTION = ("normal", "mildly_reduced", "moderately_reduced", "severely_reduced")
_EFFUSION = ("none", "small", "moderate", "large")


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` patients with one to three ECGs each.

    As in the release, validation and test contain only the last ECG of a patient, earlier ones are `no_split`; a
    finding without a measurement is 0; and signals are clipped and normalised (`to_z_scores`). The
    ejection fraction is low in left bundle branch block and fibrillation, so that a model can learn it.
    """
    records = ecg_patients(patients, seed)
    out.mkdir(parents=True, exist_ok=True)
    split_of = _splits(records)
    last = {record.patient_id: number for number, record in enumerate(records)}
    rows = []
    for number, record in enumerate(records):
        newest = last[record.patient_id] == number
        split = split_of[record.patient_id]
        rows.append(_row(number, record, split if newest or split == "train" else "no_split", newest=newest))
    table = pd.DataFrame(rows)
    table.to_csv(out / "echonext_metadata_100k.csv")
    for split in (*dict.fromkeys(SPLITS), "no_split"):
        members = np.flatnonzero(table["split"] == split)
        waveforms = np.empty((len(members), 1, _RELEASE.SAMPLES, 12))
        for place, member in enumerate(members.tolist()):
            signal = ecg_signal(records[member].truth, fs=_RELEASE.FS, seconds=_RELEASE.SAMPLES / _RELEASE.FS)
            waveforms[place, 0] = to_z_scores(signal)
        with (out / f"EchoNext_{split}_waveforms.npy").open("wb") as file:
            np.save(file, waveforms)
            file.write(GENERATED.encode())  # Placed after the last sample, because the header has no room for text.
        np.save(out / f"EchoNext_{split}_tabular_features.npy", _tabular(table.iloc[members]))


def to_z_scores(millivolts: np.ndarray) -> np.ndarray:
    """Clip and normalise (..., 12) mV as in the release, but without its median filters; returns float64."""
    return (
        np.clip(millivolts / _RELEASE.MILLIVOLTS_PER_COUNT, _RELEASE.LOWER, _RELEASE.UPPER) - _RELEASE.MEAN
    ) / _RELEASE.SD


def _splits(records: list[EcgRecord]) -> dict[str, str]:
    kinds = {record.patient_id: (record.truth.af, record.truth.kind == "lbbb") for record in records}
    return dict(zip(kinds, round_robin(list(kinds.values()), SPLITS), strict=True))


def _row(number: int, record: EcgRecord, split: str, *, newest: bool) -> dict:
    truth = record.truth
    rng = np.random.default_rng([truth.seed, number])
    weak = 1.0 * (truth.kind == "lbbb") + 0.4 * truth.af  # Weakness of the ventricle, 0 to 1.4.

    def measured(value: float, share: float) -> float | None:
        return round(value, 2) if rng.random() < share else None

    lvef = measured(62 - 22 * weak + rng.normal(0, 3), 0.9)
    septum, posterior = (measured(1.0 + 0.25 * weak + rng.normal(0, 0.12), 0.95) for _ in range(2))
    pasp = measured(30 + 14 * weak + rng.normal(0, 5), 0.57)
    velocity = measured(2.4 + 0.7 * weak + rng.normal(0, 0.2), 0.45)
    valves = {name: _SEVERITY[int(np.clip(rng.normal(1.2 * weak, 0.8), 0, 3))] for name in _VALVES}
    function = _FUNCTION[int(np.clip(rng.normal(1.5 * weak, 0.7), 0, 3))]
    effusion = _EFFUSION[int(np.clip(rng.normal(0.8 * weak, 0.9), 0, 3))] if rng.random() < 0.88 else None
    flags = {
        "lvef_lte_45_flag": lvef is not None and lvef <= 45,
        "lvwt_gte_13_flag": septum is not None and posterior is not None and max(septum, posterior) >= 1.3,
        **{f"{name}_moderate_or_greater_flag": value in _SEVERITY[2:] for name, value in valves.items()},
        "rv_systolic_dysfunction_moderate_or_greater_flag": function in _FUNCTION[2:],
        "pericardial_effusion_moderate_large_flag": effusion in _EFFUSION[2:],
        "pasp_gte_45_flag": pasp is not None and pasp >= 45,
        "tr_max_gte_32_flag": velocity is not None and velocity >= 3.2,
    }
    silent = [name for name, value in valves.items() if value == "none" and rng.random() < 0.1]
    return {
        "ecg_key": f"{700_000 + 7 * number}",
        "patient_key": f"{80_000 + int(record.patient_id[1:])}",
        "split": split,
        "most_recent_ecg": newest,
        "acquisition_year": 2008 + int(rng.integers(0, 15)),
        "location_setting": SETTINGS[int(rng.integers(0, 4))],
        "sex": {"F": "female", "M": "male"}[str(truth.sex)],
        "age_at_ecg": min(truth.age or 60.0, 90.0),
        "race_ethnicity": ETHNICITIES[int(record.patient_id[1:]) % 4],
        "ventricular_rate": truth.heart_rate,
        "atrial_rate": None if truth.af else truth.heart_rate,
        "pr_interval": truth.pr_ms,
        "qrs_duration": truth.qrs_ms,
        "qt_corrected": 400 + 0.5 * (truth.qrs_ms - 90),
        **{name: int(value) for name, value in flags.items()},
        "shd_moderate_or_greater_flag": int(any(flags.values())),
        "lvef_value": lvef,
        "ivs_measurement": septum,
        "lvpw_measurement": posterior,
        "pasp_value": pasp,
        "tr_max_velocity_value": velocity,
        **{f"{name}_value": "presumed none" if name in silent else value for name, value in valves.items()},
        "rv_systolic_function_value": function,
        "pericardial_effusion_value": effusion,
    }


def _tabular(table: pd.DataFrame) -> np.ndarray:
    """Return sex and six standardised features as stored in the release; missing values are 0 before standardisation."""
    columns = ["age_at_ecg", "ventricular_rate", "atrial_rate", "pr_interval", "qrs_duration", "qt_corrected"]
    values = table[columns].fillna(0.0).to_numpy(np.float64)
    values = (values - np.array([65, 80, 80, 160, 100, 440])) / np.array([16, 20, 20, 40, 25, 40])
    return np.column_stack([table["sex"] == "male", values])
