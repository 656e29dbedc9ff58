"""MIMIC-IV-ECHO: whole echo studies as DICOM files, with structured measurements (Beth Israel Deaconess Medical Center, PhysioNet)."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from cardiobench.data import CardioBuilder, DatasetSpec, PromptGrid, Task
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.splits import hashed_split
from cardiobench.data.tables import identifier, read_columns, text

RECORDS, STUDIES = "echo-record-list.csv", "echo-study-list.csv"
MEASUREMENTS = tuple(
    f"{name}{ending}" for name in ("structured-measurement", "structured_measurement") for ending in (".csv.gz", ".csv")
)
EJECTION_FRACTION = "lvef"

SPEC = DatasetSpec(
    name="mimic_iv_echo",
    title="MIMIC-IV-ECHO",
    version="1.0.0",
    modality="echo",
    media="video",
    licence="PhysioNet Credentialed Health Data License; no redistribution",
    access="https://physionet.org/content/mimic-iv-echo/",
    redistributable=False,
    detect_files=(RECORDS,),
    columns={"key_frame": "int64", "acquisition_datetime": "string", "measurement_id": "string"},
    tasks=(
        Task(
            "mimic_iv_echo/ef",
            "regression",
            "ef",
            ("mae",),
            unit="%",
            label_range=(0, 100),
            unit_column="study_id",
            prompt_grid=PromptGrid(0, 100, 1),
            description="ejection fraction of a study: mean of the answers for all its recordings",
        ),
    ),
    citation="Gow et al., MIMIC-IV-ECHO: Echocardiogram Matched Subset, PhysioNet, version 1.0 (2026), doi:10.13026/nrjh-5r77",
)


class MimicIvEcho(CardioBuilder):
    """One row per DICOM file of the record list; no split is published, so a patient's is drawn from the hash of the id."""

    SPEC = SPEC

    @classmethod
    def studies(cls, raw: Path) -> pd.DataFrame:
        """Return study_id -> measurement_id; empty for releases whose study list has no measurements."""
        table = read_columns(
            raw / STUDIES, {"study_id": identifier()}, extra={"measurement_id": identifier(optional=True)}
        )
        return table.drop_duplicates("study_id").set_index("study_id")[["measurement_id"]]

    @classmethod
    def fractions(cls, raw: Path) -> pd.DataFrame:
        """Return the rows of the structured measurements that are ejection fractions: measurement_id, result (text), ef (null where the text is no percentage)."""
        path = next((raw / name for name in MEASUREMENTS if (raw / name).is_file()), None)
        if path is None:
            return pd.DataFrame(columns=["measurement_id", "result", "ef"])
        table = read_columns(
            path,
            {"measurement_id": identifier(), "measurement": text(), "result": text(optional=True)},
            where=("measurement", lambda cell: cell.strip().lower() == EJECTION_FRACTION),
        ).reset_index(drop=True)
        number = pd.to_numeric(table["result"], errors="coerce")
        return table.assign(ef=number.where(number.between(0, 100)))[["measurement_id", "result", "ef"]]

    @classmethod
    def rows(cls, raw: Path) -> Iterator[dict]:
        """Yield one row per DICOM file; a study's ejection fraction is the first readable one of its linked measurement."""
        table = read_columns(
            raw / RECORDS,
            {"subject_id": identifier(), "study_id": identifier(), "dicom_filepath": text()},
            extra={"acquisition_datetime": text(optional=True)},
        )
        studies = cls.studies(raw)
        fractions = (
            cls.fractions(raw).dropna(subset="ef").drop_duplicates("measurement_id").set_index("measurement_id")["ef"]
        )
        table["measurement_id"] = table["study_id"].map(studies["measurement_id"])
        table["ef"] = table["measurement_id"].map(fractions)
        for row in table.itertuples():
            path = row.dicom_filepath.lstrip("/")
            yield {
                "id": Path(path).stem,
                "patient_id": row.subject_id,
                "study_id": row.study_id,
                "split": hashed_split(row.subject_id),
                "media": path,
                "key_frame": 0,
                "acquisition_datetime": row.acquisition_datetime,
                "measurement_id": row.measurement_id,
                "ef": row.ef,
            }

    @classmethod
    def findings(cls, raw: Path, listed: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield how many studies have an ejection fraction, and which results could not be read as one."""
        fractions = cls.fractions(raw)
        studies = listed.drop_duplicates("study_id")
        bare = studies.loc[studies["ef"].isna(), "study_id"]
        yield AuditFinding(
            "studies without an ejection fraction", len(bare), "studies", tuple(bare), f"of {len(studies)}"
        )
        odd = fractions.loc[fractions["ef"].isna(), "result"].astype(str)
        yield AuditFinding(
            "ejection fractions that are no percentage (left out)", len(odd), "results", tuple(odd.unique())
        )
        twice = fractions.dropna(subset="ef").groupby("measurement_id")["ef"].nunique()
        twice = twice.index[twice > 1]
        yield AuditFinding(
            "measurements with several ejection fractions (the first counts)", len(twice), "measurements", tuple(twice)
        )
