"""Chapman-Shaoxing and Ningbo: 45,152 clinical 12-lead ECGs of two hospitals (PhysioNet/CinC Challenge 2021, version 1.0.3)."""

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from cardiobench.data import AGE_GROUPS, SEX_GROUPS, CardioBuilder, DatasetSpec, Group, Task, cinc
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.cinc_classes import all_but, scored_labels
from cardiobench.data.demographics import age_task, sex_task
from cardiobench.data.ecg_labels import AF_CLASSES, CD_CLASSES
from cardiobench.data.release_counts import expected_counts
from cardiobench.data.spec import TOTAL
from cardiobench.data.splits import hashed_split

HOSPITALS = ("chapman_shaoxing", "ningbo")
FIRST_NINGBO, LAST = 10_646, 45_550
"""Numbers of the first Ningbo record and of the last record, independent of the folder."""
FOLDERS = (*HOSPITALS, "WFDB_ChapmanShaoxing", "WFDB_Ningbo", "WFDBRecords")
RECORD = re.compile(r"J?S\d{5}")
CLASSES = {"cd": CD_CLASSES, "af": AF_CLASSES}
SCORED = {
    "cinc_chapman": ("chapman_shaoxing", all_but("BBB", "Brady", "IRBBB", "LAnFB", "PR", "PRWP", "SA")),
    "cinc_ningbo": ("ningbo", all_but("AF", "Brady")),
}
"""Target -> hospital and its classes with at least ten recordings; with both hospitals in one task, the classes would
reveal the hospital."""
RECORDINGS = {
    "chapman_shaoxing": "AF 1780, AFL 445, IAVB 247, LAD 382, LPR 12, LQRSV 249, LQT 57, NSIVCB 235, NSR 1826, QAb 235, "
    "RAD 215, SB 3889, STach 1568, TAb 1876, TInv 157",
    "ningbo": "AFL 7615, BBB 385, IAVB 893, IRBBB 246, LAD 1163, LAnFB 380, LPR 40, LQRSV 794, LQT 337, NSIVCB 536, "
    "NSR 6299, PR 1182, PRWP 638, QAb 828, RAD 638, SA 2550, SB 12670, STach 5687, TAb 5167, TInv 2720",
}
"""Hospital -> number of recordings of each class with a single code (`dx_mapping_scored.csv`)."""
GROUPS = (SEX_GROUPS, AGE_GROUPS)
BOTH = (*GROUPS, Group("hospital", "hospital"))


def _task(name: str, target: str, description: str, hospital: str | None = None) -> Task:
    """Return a task for both hospitals or for one."""
    return Task(
        f"chapman_ningbo/{name}",
        "binary",
        target,
        ("f1_macro",),
        CLASSES[target],
        where={"hospital": (hospital,)} if hospital else {},
        groups=GROUPS if hospital else BOTH,
        description=description,
    )


def _scored(target: str) -> Task:
    """Return the task of the diagnoses scored by the Challenge, for one hospital."""
    hospital, classes = SCORED[target]
    return Task(
        f"chapman_ningbo/{target}",
        "multilabel",
        target,
        ("auroc_macro",),
        classes,
        where={"hospital": (hospital,)},
        groups=GROUPS,
        expected=expected_counts(RECORDINGS[hospital], ()),
        description=f"{len(classes)} diagnoses scored by the Challenge, only {hospital.split('_')[0].capitalize()}",
    )


SPEC = DatasetSpec(
    name="chapman_ningbo",
    title="Chapman-Shaoxing and Ningbo 12-lead ECG (CinC 2021)",
    version="1.1.0",
    modality="ecg",
    media="ecg",
    licence="CC BY 4.0",
    access="https://physionet.org/content/challenge-2021/1.0.3/",
    redistributable=True,
    detect_files=(*(f"training/{hospital}" for hospital in HOSPITALS), *FOLDERS),
    label_file="{stem}.hea",
    expected={TOTAL: 45_152},  # The hospitals have 10,247 and 34,905 records.
    columns={**cinc.COLUMNS, "hospital": "string"},
    configs={hospital: ("hospital", hospital) for hospital in HOSPITALS},
    tasks=(
        _task("cd", "cd", "conduction disturbance"),
        _task("af", "af", "atrial fibrillation; occurs only in Chapman-Shaoxing, so the hospital reveals it"),
        _task("cd_chapman", "cd", "conduction disturbance, only Chapman-Shaoxing", "chapman_shaoxing"),
        _task("cd_ningbo", "cd", "conduction disturbance, only Ningbo", "ningbo"),
        _task("af_chapman", "af", "atrial fibrillation, only Chapman-Shaoxing", "chapman_shaoxing"),
        *map(_scored, SCORED),
        age_task("chapman_ningbo", BOTH),
        sex_task("chapman_ningbo", BOTH),
    ),
    citation="Zheng et al., A 12-lead electrocardiogram database for arrhythmia research covering more than 10,000 patients, "
    "Scientific Data 7:48 (2020); Zheng et al., Optimal multi-stage arrhythmia classification approach, Scientific Reports 10:2898 (2020)",
)


class ChapmanNingbo(CardioBuilder):
    """Records of both hospitals, read from their headers.

    The record number gives the hospital, the hash of the name the split.
    """

    SPEC = SPEC

    @classmethod
    def rows(cls, raw: Path) -> Iterator[dict]:
        """Yield one row per header; the record `S23074` of some copies is JS23074, in the same split."""
        for folder in cinc.record_folders(raw, FOLDERS):
            for row in cinc.analysis_rows(raw, folder, RECORD):
                number = row["id"].lstrip("JS")
                name, hospital = f"JS{number}", HOSPITALS[int(number) >= FIRST_NINGBO]
                labels = {
                    target: scored_labels(cinc.codes_of(row), classes) if hospital == source else None
                    for target, (source, classes) in SCORED.items()
                }
                ids = {"id": name, "patient_id": name, "split": hashed_split(name)}
                yield {**row, **ids, "hospital": hospital, **labels}

    @classmethod
    def candidates(cls) -> Iterator[str]:
        """Yield the names from the first to the last record; 398 numbers before Ningbo are in no release."""
        return (f"JS{number:05d}" for number in range(1, LAST + 1))

    @classmethod
    def audit_findings(cls, raw: Path, listed: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield unknown codes, records without codes, and the number of records and positives of each hospital."""
        yield from cinc.audit_findings(listed)
        for hospital in HOSPITALS:
            rows = listed[listed["hospital"] == hospital]
            positives = ", ".join(f"{names[1]} {(rows[target] == names[1]).sum()}" for target, names in CLASSES.items())
            yield AuditFinding(f"records of {hospital}", len(rows), "records", note=positives)
