"""Chapman-Shaoxing and Ningbo: 45,152 clinical 12-lead ECGs of two hospitals (PhysioNet/CinC Challenge 2021, version 1.0.3)."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pandas as pd

from cardiobench.data import AGE_GROUPS, SEX_GROUPS, CardioBuilder, DatasetSpec, Group, Task, cinc
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.cinc_classes import CHAPMAN, NINGBO, RECORDS, scored_labels
from cardiobench.data.demographics import age_task, sex_task
from cardiobench.data.ecg_labels import AF_CLASSES, CD_CLASSES
from cardiobench.data.release_counts import expected_counts
from cardiobench.data.spec import TOTAL
from cardiobench.data.splits import hashed_split

HOSPITALS = ("chapman_shaoxing", "ningbo")
FIRST_NINGBO, LAST = 10_646, 45_550
"""Numbers of the first record of Ningbo, whichever folder it lies in, and of the last of all."""
FOLDERS = (*HOSPITALS, "WFDB_ChapmanShaoxing", "WFDB_Ningbo", "WFDBRecords")
RECORD = re.compile(r"J?S\d{5}")
CLASSES = {"cd": CD_CLASSES, "af": AF_CLASSES}
SCORED = {"cinc_chapman": ("chapman_shaoxing", CHAPMAN), "cinc_ningbo": ("ningbo", NINGBO)}
"""Target -> its hospital and its classes: those of both together would tell the hospital."""
GROUPS = (SEX_GROUPS, AGE_GROUPS)
BOTH = (*GROUPS, Group("hospital", "hospital"))


def _task(name: str, target: str, description: str, hospital: str | None = None) -> Task:
    """Return one question, asked of both hospitals or of one."""
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
    """Return the task of the diagnoses that the Challenge scores, of one hospital."""
    hospital, classes = SCORED[target]
    return Task(
        f"chapman_ningbo/{target}",
        "multilabel",
        target,
        ("auroc_macro",),
        classes,
        where={"hospital": (hospital,)},
        groups=GROUPS,
        expected=expected_counts(RECORDS[hospital], ()),
        description=f"{len(classes)} diagnoses that the Challenge scores, {hospital.split('_')[0].capitalize()} alone",
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
    expected={TOTAL: 45_152},  # 10,247 and 34,905
    columns={**cinc.COLUMNS, "hospital": "string"},
    configs={hospital: ("hospital", hospital) for hospital in HOSPITALS},
    tasks=(
        _task("cd", "cd", "conduction disturbance"),
        _task("af", "af", "atrial fibrillation; in Chapman-Shaoxing only, so that the hospital gives it away"),
        _task("cd_chapman", "cd", "conduction disturbance, Chapman-Shaoxing alone", "chapman_shaoxing"),
        _task("cd_ningbo", "cd", "conduction disturbance, Ningbo alone", "ningbo"),
        _task("af_chapman", "af", "atrial fibrillation, Chapman-Shaoxing alone", "chapman_shaoxing"),
        *map(_scored, SCORED),
        age_task("chapman_ningbo", BOTH),
        sex_task("chapman_ningbo", BOTH),
    ),
    citation="Zheng et al., A 12-lead electrocardiogram database for arrhythmia research covering more than 10,000 patients, "
    "Scientific Data 7:48 (2020); Zheng et al., Optimal multi-stage arrhythmia classification approach, Scientific Reports 10:2898 (2020)",
)


class ChapmanNingbo(CardioBuilder):
    """Records of both hospitals, by their headers; the number says the hospital, the hash of the record's name the split."""

    SPEC = SPEC

    @classmethod
    def rows(cls, raw: Path) -> Iterator[dict]:
        """Yield one row per header; the one record that a copy may call `S23074` is JS23074, in the same split."""
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
        """Yield the names from the first to the last record; 398 of those before Ningbo are in no release."""
        return (f"JS{number:05d}" for number in range(1, LAST + 1))

    @classmethod
    def findings(cls, raw: Path, listed: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield the codes that nobody lists, and records without any; records and positives of each hospital."""
        yield from cinc.findings(listed)
        for hospital in HOSPITALS:
            rows = listed[listed["hospital"] == hospital]
            positives = ", ".join(f"{names[1]} {(rows[target] == names[1]).sum()}" for target, names in CLASSES.items())
            yield AuditFinding(f"records of {hospital}", len(rows), "records", note=positives)

    @classmethod
    def recording_findings(cls, raw: Path, rows: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield the records with a lead of zeros, and those at the limit of the format."""
        yield from cinc.recording_findings(partial(cls.recording, raw), rows)
