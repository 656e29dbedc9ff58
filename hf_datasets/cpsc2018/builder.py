"""CPSC2018: 6,877 12-lead ECGs of 6 to 144 seconds from eleven hospitals (PhysioNet/CinC Challenge 2021, version 1.0.3)."""

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from cardiobench.core.errors import BadMedia
from cardiobench.data import AGE_GROUPS, SEX_GROUPS, CardioBuilder, DatasetSpec, Task, cinc
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.ecg_labels import af_task, cd_task
from cardiobench.data.labels import label_set
from cardiobench.data.media.ecg_wfdb import header_path, parse_header
from cardiobench.data.release_counts import expected_counts
from cardiobench.data.splits import hashed_splits

# Records are numbered without gaps, so splits are known before the download.
RELEASE = hashed_splits(f"A{number:04d}" for number in range(1, 6_878)).tolist()
FOLDERS = ("cpsc_2018", "WFDB_CPSC2018", "Training_WFDB")
RECORD = re.compile(r"A\d{4}")
GROUPS = (SEX_GROUPS, AGE_GROUPS)
CODES = {
    "NSR": "426783006",
    "AF": "164889003",
    "IAVB": "270492004",
    "LBBB": "164909002",
    "RBBB": "59118001",
    "PAC": "284470004",
    "PVC": "164884008",
    "STD": "429622005",
    "STE": "164931005",
}
"""The nine classes and their SNOMED CT codes. PVC uses the code of ventricular ectopic beats, which the Challenge does
not score."""
RECORDS = "NSR 918, AF 1221, IAVB 722, LBBB 236, RBBB 1857, PAC 616, PVC 700, STD 869, STE 220"

SPEC = DatasetSpec(
    name="cpsc2018",
    title="CPSC2018 12-lead ECG (CinC 2021)",
    version="1.0.0",
    modality="ecg",
    media="ecg",
    licence="CC BY 4.0",
    access="https://physionet.org/content/challenge-2021/1.0.3/",
    redistributable=True,
    detect_files=("training/cpsc_2018", *FOLDERS, "g1/A0001.hea", "A0001.hea"),
    label_file="{stem}.hea",
    expected={split: RELEASE.count(split) for split in ("train", "validation", "test")},
    columns=cinc.COLUMNS,
    tasks=(
        cd_task("cpsc2018", GROUPS),
        af_task("cpsc2018", GROUPS),
        Task(
            "cpsc2018/nine",
            "multilabel",
            "nine",
            ("auroc_macro",),
            tuple(CODES),
            groups=GROUPS,
            expected=expected_counts(RECORDS, ()),
            description="the nine classes of the release",
        ),
    ),
    citation="Liu et al., An open access database for evaluating the algorithms of electrocardiogram rhythm and morphology "
    "abnormality detection, Journal of Medical Imaging and Health Informatics 8:1368 (2018)",
)


class Cpsc2018(CardioBuilder):
    """Records A0001 to A6877, read from their headers, split by the hash of the record name."""

    SPEC = SPEC

    @classmethod
    def rows(cls, raw: Path) -> Iterator[dict]:
        """Yield one row per header."""
        for folder in cinc.record_folders(raw, FOLDERS) or (raw,):
            for row in cinc.analysis_rows(raw, folder, RECORD):
                codes = (row["dx"] or "").split(",")
                nine = label_set([name for name, code in CODES.items() if code in codes], tuple(CODES))
                yield {**row, "nine": nine if row["dx"] else None}

    @classmethod
    def audit_findings(cls, raw: Path, listed: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield unknown codes, records without codes, and the record lengths, which differ between classes."""
        yield from cinc.audit_findings(listed)
        seconds = pd.Series([_seconds(header_path(raw / media)) for media in listed["media"]], listed.index)
        lengths = {name: seconds[_has(listed, code)].dropna() for name, code in CODES.items()}
        medians = ", ".join(f"{name} {part.median():.0f}" for name, part in lengths.items() if len(part))
        note = f"{seconds.min():.0f} to {seconds.max():.0f} s; median of the records with {medians}"
        yield AuditFinding("records that are not 10 s long", int((seconds.dropna() != 10).sum()), "records", note=note)


def _has(listed: pd.DataFrame, code: str) -> pd.Series:
    return listed["dx"].fillna("").str.split(",").map(lambda codes: code in codes)


def _seconds(header: Path) -> float:
    """Return the length of a record from its header; NaN if it is not stated or there is no header."""
    try:
        fields = parse_header(header)
    except BadMedia:
        return float("nan")
    return fields.samples / fields.fs if fields.samples else float("nan")
