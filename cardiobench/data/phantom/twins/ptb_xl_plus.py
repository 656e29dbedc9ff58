"""Synthetic twin of PTB-XL+ 1.0.1: measurements of two algorithms for the records of PTB-XL's twin."""

from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.data.phantom.ecg import EcgRecord

FOLDER = "ptb_xl_plus"
_QT = 395.0  # QT in ms at 60 beats per minute with a QRS complex of 90 ms, as in the phantoms.


def write(out: Path, records: list[EcgRecord]) -> None:
    """Write the feature tables of 12SL and Uni-G for records 1 and up.

    As in the release, `ecg_id` is not the first column, rows are unordered, the PR interval is empty in atrial
    fibrillation, and Uni-G lacks a record.
    """
    (out / "features").mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(len(records))
    exact = pd.DataFrame([_row(number, record) for number, record in enumerate(records, start=1)])
    order = rng.permutation(len(exact))
    exact.iloc[order].to_csv(out / "features" / "12sl_features.csv", index=False)
    other = exact.iloc[order[: max(1, len(order) - 1)]].copy()
    for column in other.columns.drop("ecg_id"):
        other[column] = other[column] + np.round(rng.normal(0, 4, len(other)))
    other.to_csv(out / "features" / "unig_features.csv", index=False)


def _row(number: int, record: EcgRecord) -> dict[str, float | None]:
    truth = record.truth
    rr = 60_000 / truth.heart_rate
    qt = (_QT + 0.6 * (truth.qrs_ms - 90)) * np.cbrt(rr / 1000)
    return {
        "P_Dur_Global": None if truth.af else 100.0,
        "PR_Int_Global": truth.pr_ms,
        "QRS_Dur_Global": truth.qrs_ms,
        "ecg_id": number,
        "QT_Int_Global": round(qt),
        "QT_IntBazett_Global": round(qt / np.sqrt(rr / 1000)),
        "RR_Mean_Global": round(rr),
    }
