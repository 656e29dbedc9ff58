"""MIMIC-IV-ECHO: whole echo studies as DICOM files, with structured measurements (Beth Israel Deaconess Medical Center, PhysioNet)."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import pandas as pd

from cardiobench.core.file_state import FileState, file_state
from cardiobench.data import SEX_GROUPS, CardioBuilder, DatasetSpec, Group, PromptGrid, Task
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.dicom_kinds import recording_kinds
from cardiobench.data.measurements import (
    ABSENT,
    PRESENT,
    GradeRule,
    Limit,
    Quantity,
    StudyMeasurements,
    ejection_fractions,
    problem_summary,
    read_measurements,
)
from cardiobench.data.media.dicom_regions import TWO_DIMENSIONAL, UNREAD
from cardiobench.data.splits import hashed_splits
from cardiobench.data.tables import choice, identifier, read_columns, text

RECORDS, STUDIES = "echo-record-list.csv", "echo-study-list.csv"
MEASUREMENTS = tuple(
    f"{name}{ending}" for name in ("structured-measurement", "structured_measurement") for ending in (".csv.gz", ".csv")
)
NAME = re.compile(r"^(?:.*/)?(.+?)(?:\.[^./]+)?$")
"""Pattern of a path; its group is the file name without suffix."""
PATIENTS = ("patients.csv.gz", "patients.csv")  # Table of MIMIC-IV; only its sex column is read.

# Bounds of plausible values. Those of walls, velocities, gradients, area, fraction and TAPSE come from public readers
# of this release; the others are wide bounds of this package. A fraction below 1 % is a share of 1 or a missing value.
FRACTION, WALL = Quantity("%", 1, 100), Quantity("cm", 0.3, 3)
QUANTITIES = {
    "lvef": FRACTION,
    "lvef_upper": FRACTION,
    "biplane_lvef": FRACTION,
    "lvef_3d": FRACTION,
    "lvedd": Quantity("cm", 1.5, 12),
    "lvesd": Quantity("cm", 0.8, 11),
    "septal_thickness": WALL,
    "inf_lat_thickness": WALL,
    "la_vol": Quantity("mL", 5, 600),
    "rv_diam": Quantity("cm", 0.5, 10),
    "tapse": Quantity("cm", 0.5, 4, mixed_unit="mm"),
    "tr_velocity": Quantity("m/s", 0, 10),
    "av_pk_vel": Quantity("m/s", 0, 8),
    "av_mean_grad": Quantity("mmHg", 0, 150),
    "av_area_continuity": Quantity("cm2", 0.1, 8),
}

LANG = "Lang et al. 2015, doi:10.1016/j.echo.2014.10.003"
ECHONEXT = "label definitions of EchoNext as applied to this release by public code"
NONE_TO_MILD = r"^(none|no\b|trace|trivial|physiologic|minimal|mild|normal)"
MODERATE = r"^mod|sever|torrential"
LEAK = ((ABSENT, NONE_TO_MILD), (PRESENT, MODERATE))

# One row per label. Words take precedence; numbers are used if the words give no grade. Unmeasured findings have no
# label.
LABELS = (
    GradeRule("ef_le40", "ejection fraction of 40 % or less", "McDonagh et al. 2021, reduced ejection fraction", limits=(Limit("ef", 40, below=True),)),
    GradeRule("ef_le45", "ejection fraction of 45 % or less", ECHONEXT, limits=(Limit("ef", 45, below=True),)),
    GradeRule("lv_dilated", "left ventricle wider than 5.8 cm in a man, 5.2 cm in a woman", f"{LANG}, Table 2", limits=(Limit("lvedd", 5.8, female=5.2, inclusive=False),)),
    GradeRule("lvh", "a left ventricular wall of 1.3 cm or more", ECHONEXT, limits=(Limit("septal_thickness", 1.3), Limit("inf_lat_thickness", 1.3))),
    GradeRule("lvh_15", "a left ventricular wall of 1.5 cm or more", "the stricter limit of other public code for this release", limits=(Limit("septal_thickness", 1.5), Limit("inf_lat_thickness", 1.5))),
    GradeRule("la_dilated", "dilated left atrium", "words of the report", "la_size", ((ABSENT, r"^(nl|normal|small)\b"), (PRESENT, r"dilat|enlarg|increase"))),
    GradeRule("rv_dysfunction", "right ventricular function moderately reduced or worse", ECHONEXT, "rv_function", ((ABSENT, r"^(nl|no|normal|low normal|hyperdynamic|mild)\b"), (PRESENT, r"(mod|sever).*hypo|depress"))),
    GradeRule("rv_dilated", "dilated right ventricle; without words, wider than 4.1 cm at its base", f"{LANG}, Table 8", "rv_chamber_size", ((ABSENT, r"^(nl|no|normal|small)\b"), (PRESENT, r"dilat|enlarg|increase")), (Limit("rv_diam", 4.1, inclusive=False),)),
    GradeRule("as_modsev", "aortic stenosis, moderate or severe; without words, 3 m/s, 20 mmHg or 1.5 cm2", ECHONEXT, "aortic_stenosis", ((ABSENT, NONE_TO_MILD), (PRESENT, MODERATE)), (Limit("av_pk_vel", 3), Limit("av_mean_grad", 20), Limit("av_area_continuity", 1.5, below=True)), "avr_structure", doppler=True),
    GradeRule("ar_modsev", "aortic regurgitation, moderate or severe", ECHONEXT, "aortic_regurg", LEAK, prosthesis="avr_structure", doppler=True),
    GradeRule("mr_modsev", "mitral regurgitation, moderate or severe", ECHONEXT, "mitral_regurg", LEAK, prosthesis="mvr_structure", doppler=True),
    GradeRule("tr_modsev", "tricuspid regurgitation, moderate or worse", ECHONEXT, "tricuspid_regurg", LEAK, prosthesis="tvr_structure", doppler=True),
    GradeRule("pr_modsev", "pulmonary regurgitation, significant or severe", ECHONEXT, "pulm_regurg", ((PRESENT, r"sever|significant"), (ABSENT, NONE_TO_MILD)), prosthesis="pvr_structure", doppler=True),
    GradeRule("ph", "tricuspid regurgitation faster than 2.8 m/s", "Humbert et al. 2022 (ESC/ERS), probability of pulmonary hypertension not low", limits=(Limit("tr_velocity", 2.8, inclusive=False),), doppler=True),
    GradeRule("ph_32", "tricuspid regurgitation of 3.2 m/s or faster", ECHONEXT, limits=(Limit("tr_velocity", 3.2),), doppler=True),
    GradeRule("effusion_modlarge", "pericardial effusion, moderate or large", ECHONEXT, "pericardial_effusion", ((ABSENT, r"^(none|no\b|trivial|very small|small|physiologic)|fat pad"), (PRESENT, r"^mod|large"))),
    GradeRule("diastolic_grade", "grade of diastolic dysfunction", "words of the report", "diastolic_grade", (("grade_3", r"\b(iii|iv|3|4)\b|sever|restrictive"), ("grade_2", r"\b(ii|2)\b|^mod|pseudonormal"), ("grade_1", r"\b(i|1)\b|^mild|impaired relaxation"), ("grade_0", r"^(nl|normal|none|no)\b|\b0\b")), doppler=True),
)  # fmt: skip
# Structural heart disease: any of these findings; absent if the main findings are known and all known findings are
# absent. Unlike in the definition of EchoNext, an unmentioned finding does not count as absent.
SHD_ANY = ("ef_le45", "lvh", "as_modsev", "ar_modsev", "mr_modsev", "tr_modsev", "pr_modsev", "rv_dysfunction", "effusion_modlarge", "ph_32")  # fmt: skip
SHD_NEEDED = ("ef_le45", "lvh", "as_modsev", "mr_modsev", "tr_modsev")
SHD = GradeRule("shd", f"structural heart disease: any of {', '.join(SHD_ANY)}", ECHONEXT, doppler=True)

WALLS, LENGTHS, SPEEDS = PromptGrid(0.5, 2.5, 0.1, 1), PromptGrid(2, 8, 0.1, 1), PromptGrid(1, 5, 0.1, 1)
REGRESSIONS = {
    "lvedd": (LENGTHS, "end-diastolic diameter of the left ventricle"),
    "lvesd": (LENGTHS, "end-systolic diameter of the left ventricle"),
    "septal_thickness": (WALLS, "thickness of the septum"),
    "inf_lat_thickness": (WALLS, "thickness of the inferolateral wall"),
    "la_vol": (PromptGrid(20, 200, 5), "volume of the left atrium"),
    "tapse": (PromptGrid(0.5, 3.5, 0.1, 1), "excursion of the tricuspid annulus"),
    "tr_velocity": (SPEEDS, "peak velocity of tricuspid regurgitation"),
    "av_pk_vel": (SPEEDS, "peak velocity through the aortic valve"),
}
DOPPLER_NUMBERS = ("tr_velocity", "av_pk_vel")
ONLY_2D = {"recording": (TWO_DIMENSIONAL, UNREAD)}
"""Recordings of the tasks `..._2d`; unreadable recordings are included and lower the coverage."""


def _tasks() -> Iterator[Task]:
    yield Task(
        "mimic_iv_echo/ef",
        "regression",
        "ef",
        ("mae",),
        unit="%",
        label_range=(0, 100),
        unit_column="study_id",
        groups=(SEX_GROUPS, Group("source of the fraction", "ef_source")),
        prompt_grid=PromptGrid(0, 100, 1),
        description="ejection fraction of a study: mean of the predictions for all its recordings",
    )
    for target, (grid, words) in REGRESSIONS.items():
        quantity = QUANTITIES[target]
        for ending, where, note in _selections(target in DOPPLER_NUMBERS):
            yield Task(
                f"mimic_iv_echo/{target}{ending}",
                "regression",
                target,
                ("mae",),
                unit=quantity.unit,
                label_range=(quantity.low, quantity.high),
                unit_column="study_id",
                where=where,
                groups=(SEX_GROUPS,),
                prompt_grid=grid,
                description=f"{words}, per study{note}",
            )
    for rule in (*LABELS, SHD):
        for ending, where, note in _selections(rule.doppler):
            yield Task(
                f"mimic_iv_echo/{rule.target}{ending}",
                "binary" if len(rule.classes) == 2 else "multiclass",
                rule.target,
                ("f1_macro",),
                rule.classes,
                unit_column="study_id",
                where=where,
                groups=(SEX_GROUPS,),
                description=f"{rule.description}, per study{note}",
            )


def _selections(doppler: bool) -> Iterator[tuple[str, Mapping[str, tuple[str, ...]], str]]:
    """Yield (name suffix, rows, note): all recordings, then 2D cines only for labels that require Doppler."""
    yield "", {}, ""
    if doppler:
        yield "_2d", ONLY_2D, ", from 2D cines alone"


SPEC = DatasetSpec(
    name="mimic_iv_echo",
    title="MIMIC-IV-ECHO",
    version="1.1.0",
    modality="echo",
    media="video",
    licence="PhysioNet Credentialed Health Data License; no redistribution",
    access="https://physionet.org/content/mimic-iv-echo/",
    redistributable=False,
    detect_files=(RECORDS,),
    columns={
        "key_frame": "int64",
        "recording": "string",
        "acquisition_datetime": "string",
        "measurement_id": "string",
        "sex": "string",
        "ef_source": "string",
    },
    tasks=tuple(_tasks()),
    citation="Gow et al., MIMIC-IV-ECHO: Echocardiogram Matched Subset, PhysioNet, version 1.0 (2026), doi:10.13026/nrjh-5r77",
)


class MimicIvEcho(CardioBuilder):
    """One row per DICOM file of the record list; no split is published, so patients are split by the hash of the id."""

    SPEC = SPEC

    @classmethod
    def studies(cls, raw: Path) -> pd.DataFrame:
        """Return a mapping from study_id to measurement_id; empty for releases whose study list has no measurements."""
        table = read_columns(
            raw / STUDIES, {"study_id": identifier()}, extra={"measurement_id": identifier(optional=True)}
        )
        # Studies listed twice keep the lowest measurement id; ids are text of any length, ordered by length first.
        table = table.assign(digits=table["measurement_id"].str.len())
        table = table.sort_values(["digits", "measurement_id"], kind="stable")
        return table.drop_duplicates("study_id").set_index("study_id")[["measurement_id"]]

    @classmethod
    def measurements(cls, raw: Path) -> StudyMeasurements | None:
        """Return the structured measurements linked to studies; None if the release has none."""
        path = next((raw / name for name in MEASUREMENTS if (raw / name).is_file()), None)
        if path is None:
            return None
        linked = frozenset(cls.studies(raw)["measurement_id"].dropna())
        return _read(path, linked, file_state(path))

    @classmethod
    def sexes(cls, raw: Path) -> pd.Series:
        """Return "F" or "M" by subject_id, from the table of patients of MIMIC-IV if the user has added it."""
        path = next((raw / name for name in PATIENTS if (raw / name).is_file()), None)
        if path is None:
            return pd.Series(dtype=object)
        columns = {"subject_id": identifier(), "gender": choice({"F": "F", "M": "M"}, optional=True)}
        return read_columns(path, columns).drop_duplicates("subject_id").set_index("subject_id")["gender"]

    @classmethod
    def rows(cls, raw: Path) -> pd.DataFrame:
        """Return one row per DICOM file, with the labels of the measurement linked to its study."""
        table = read_columns(
            raw / RECORDS,
            {"subject_id": identifier(), "study_id": identifier(), "dicom_filepath": text()},
            extra={"acquisition_datetime": text(optional=True)},
        ).reset_index(drop=True)
        path = table["dicom_filepath"].str.lstrip("/")
        rows = table[["study_id", "acquisition_datetime"]].assign(
            id=path.str.replace(NAME, r"\1", regex=True),
            patient_id=table["subject_id"],
            split=hashed_splits(table["subject_id"]),
            media=path,
            key_frame=0,
            recording=recording_kinds(raw, path),
            measurement_id=table["study_id"].map(cls.studies(raw)["measurement_id"]),
        )
        measured = cls.measurements(raw)
        listed = cls.sexes(raw)
        if measured is None:
            return rows.assign(sex=rows["patient_id"].map(listed))
        people = rows.dropna(subset="measurement_id").drop_duplicates("measurement_id").set_index("measurement_id")
        sex = people["patient_id"].map(listed)
        sex = sex.where(sex.notna(), measured.sex.reindex(sex.index))
        labels = study_labels(measured, sex)
        return rows.join(labels, on="measurement_id")

    @classmethod
    def excluded(cls, raw: Path, rows: pd.DataFrame) -> Mapping[str, tuple[str, ...]]:
        """Return the unusable measurements by line."""
        measured = cls.measurements(raw)
        return {} if measured is None else problem_summary(measured.problems)

    @classmethod
    def audit_findings(cls, raw: Path, listed: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield the number of studies with an ejection fraction, its sources, and the kinds of recordings."""
        studies = listed.drop_duplicates("study_id")
        bare = studies.loc[studies["ef"].isna(), "study_id"]
        yield AuditFinding(
            "studies without an ejection fraction", len(bare), "studies", tuple(bare), f"of {len(studies)}"
        )
        for source, count in studies["ef_source"].value_counts().items():
            yield AuditFinding(f"ejection fractions from: {source}", int(count), "studies")
        for kind, count in listed["recording"].value_counts().items():
            yield AuditFinding(f"recordings of kind '{kind}'", int(count), "recordings")


@lru_cache(maxsize=1)
def _read(path: Path, studies: frozenset[str], state: FileState) -> StudyMeasurements:
    """Read the measurements of a release, cached per state of the file because there are tens of millions."""
    return read_measurements(path, studies, QUANTITIES, LABELS)


def study_labels(measured: StudyMeasurements, sex: pd.Series) -> pd.DataFrame:
    """Return the labels of all tasks, index measurement_id.

    Args:
        measured: Measurements of the studies.
        sex: Sex by measurement_id: "F", "M" or null.
    """
    fractions = ejection_fractions(measured.numbers)
    with_fraction = measured.with_numbers(fractions[["ef"]])
    labels = {rule.target: with_fraction.label(rule, sex) for rule in LABELS}
    diseases = pd.DataFrame({name: labels[name] for name in SHD_ANY})
    shd = pd.Series(None, index=diseases.index, dtype=object)
    shd[(diseases[list(SHD_NEEDED)] == ABSENT).all(axis=1)] = ABSENT
    shd[(diseases == PRESENT).any(axis=1)] = PRESENT
    columns = {"sex": sex.reindex(diseases.index), **labels, "shd": shd}
    return fractions.join(measured.numbers[list(REGRESSIONS)]).join(pd.DataFrame(columns))
