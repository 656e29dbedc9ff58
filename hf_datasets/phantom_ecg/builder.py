"""ECG phantom: generated 12-lead ECGs with known rhythm and conduction."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from cardiobench.data import AGE_GROUPS, SEX_GROUPS, CardioBuilder, DatasetSpec, Ecg, Task
from cardiobench.data.ecg_labels import AF_CLASSES, CD_CLASSES
from cardiobench.data.labels import label_set
from cardiobench.data.media.signal import twelve_leads
from cardiobench.data.phantom.ecg import EcgRecord, EcgTruth, ecg_patients, ecg_signal

PATIENTS, SEED, FS = 150, 0, 500.0
GROUPS = (SEX_GROUPS, AGE_GROUPS)
FINDINGS = {"AF": "", "RBBB": "rbbb", "LBBB": "lbbb", "1AVB": "avb1"}
"""Class -> kind of conduction; atrial fibrillation can occur with each of them."""

SPEC = DatasetSpec(
    name="phantom_ecg",
    title="ECG phantom",
    version="1.1.0",
    modality="ecg",
    media="ecg",
    licence="Apache-2.0",
    access="",
    redistributable=True,
    generated=True,
    demo=("cd", "af"),
    columns={"sex": "string", "age": "float64", "heart_rate": "float64", "qrs_ms": "float64", "pr_ms": "float64"},
    tasks=(
        Task(
            "phantom_ecg/cd",
            "binary",
            "cd",
            ("f1_macro",),
            CD_CLASSES,
            groups=GROUPS,
            description="conduction disturbance: wide QRS or long PR",
        ),
        Task(
            "phantom_ecg/af",
            "binary",
            "af",
            ("f1_macro",),
            AF_CLASSES,
            groups=GROUPS,
            description="atrial fibrillation: irregular RR without P waves",
        ),
        Task(
            "phantom_ecg/findings",
            "multilabel",
            "findings",
            ("auroc_macro",),
            tuple(FINDINGS),
            groups=GROUPS,
            partially_labelled=True,
            description="fibrillation and kinds of block together; in fibrillation the PR interval cannot be measured",
        ),
    ),
)


def findings(truth: EcgTruth) -> str:
    """Return the cell of a record's findings."""
    present = [name for name, kind in FINDINGS.items() if truth.kind == kind or (name == "AF" and truth.af)]
    return label_set(present, tuple(FINDINGS), ["1AVB"] if truth.af else [])


@cache
def records() -> dict[str, EcgRecord]:
    """Return a mapping from id to recording."""
    return {record.id: record for record in ecg_patients(PATIENTS, SEED)}


class PhantomEcg(CardioBuilder):
    """Generated 10 s records at 500 Hz of 150 patients, one to three each."""

    SPEC = SPEC

    @classmethod
    def rows(cls, raw: Path | None) -> Iterator[dict]:
        """Yield one row per record."""
        for record in records().values():
            truth = record.truth
            yield {
                "id": record.id,
                "patient_id": record.patient_id,
                "split": cls.split_by_last_digit(record.patient_id),
                "media": record.id,
                "sex": truth.sex,
                "age": truth.age,
                "heart_rate": truth.heart_rate,
                "qrs_ms": truth.qrs_ms,
                "pr_ms": truth.pr_ms,
                "cd": CD_CLASSES[truth.cd],
                "af": AF_CLASSES[truth.af],
                "findings": findings(truth),
            }

    @classmethod
    def ecg(cls, raw: Path | None, row: Mapping[str, Any]) -> Ecg:
        """Return the generated record."""
        return twelve_leads(ecg_signal(records()[row["id"]].truth, FS), FS, row["id"])
