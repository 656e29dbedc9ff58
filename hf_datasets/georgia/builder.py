"""Georgia: 10,344 clinical 12-lead ECGs (PhysioNet/CinC Challenge 2021, version 1.0.3)."""

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from cardiobench.data import AGE_GROUPS, SEX_GROUPS, CardioBuilder, DatasetSpec, Task, cinc
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.cinc_classes import all_but, scored_labels
from cardiobench.data.demographics import age_task, sex_task
from cardiobench.data.ecg_labels import af_task, cd_task
from cardiobench.data.release_counts import expected_counts
from cardiobench.data.splits import hashed_splits

# Records are numbered without gaps, so splits are known before the download.
RELEASE = hashed_splits(f"E{number:05d}" for number in range(1, 10_345)).tolist()
FOLDERS = ("georgia", "WFDB_Ga")
RECORD = re.compile(r"E\d{5}")
GROUPS = (SEX_GROUPS, AGE_GROUPS)
SCORED = all_but("Brady", "LPR", "PR", "PRWP")
"""Classes scored by the Challenge, without those of fewer than ten recordings."""
RECORDINGS = (
    "AF 570, AFL 186, BBB 116, IAVB 769, IRBBB 407, LAD 940, LAnFB 180, LQRSV 374, LQT 1391, NSIVCB 203, NSR 1752, "
    "QAb 464, RAD 83, SA 455, SB 1677, STach 1261, TAb 2306, TInv 812"
)
"""Number of recordings of each class with a single code (`dx_mapping_scored.csv`)."""

SPEC = DatasetSpec(
    name="georgia",
    title="Georgia 12-lead ECG (CinC 2021)",
    version="1.1.0",
    modality="ecg",
    media="ecg",
    licence="CC BY 4.0",
    access="https://physionet.org/content/challenge-2021/1.0.3/",
    redistributable=True,
    detect_files=("training/georgia", *FOLDERS, "g1/E00001.hea", "E00001.hea"),
    label_file="{stem}.hea",
    expected={split: RELEASE.count(split) for split in ("train", "validation", "test")},
    columns=cinc.COLUMNS,
    duplicates=(("E07509", "E07510"),),
    tasks=(
        cd_task("georgia", GROUPS),
        af_task("georgia", GROUPS),
        Task(
            "georgia/cinc",
            "multilabel",
            "cinc",
            ("auroc_macro",),
            SCORED,
            groups=GROUPS,
            expected=expected_counts(RECORDINGS, ()),
            description=f"{len(SCORED)} diagnoses scored by the Challenge",
        ),
        age_task("georgia", GROUPS),
        sex_task("georgia", GROUPS),
    ),
    citation="Perez Alday et al., Classification of 12-lead ECGs: the PhysioNet/Computing in Cardiology Challenge 2020, "
    "Physiological Measurement 41:124003 (2020)",
)


class Georgia(CardioBuilder):
    """Records E00001 to E10344, read from their headers, split by the hash of the record name."""

    SPEC = SPEC

    @classmethod
    def rows(cls, raw: Path) -> Iterator[dict]:
        """Yield one row per header."""
        for folder in cinc.record_folders(raw, FOLDERS) or (raw,):
            for row in cinc.analysis_rows(raw, folder, RECORD):
                yield {**row, "cinc": scored_labels(cinc.codes_of(row), SCORED)}

    @classmethod
    def audit_findings(cls, raw: Path, listed: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield unknown codes and records without codes."""
        yield from cinc.audit_findings(listed)
