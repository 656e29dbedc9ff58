"""SPH: 25,770 clinical 12-lead ECGs of 24,666 patients of Shandong Provincial Hospital (figshare, version 1)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from cardiobench.core.errors import BadMedia
from cardiobench.data import AGE_GROUPS, SEX_GROUPS, CardioBuilder, DatasetSpec, Ecg, Task
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.demographics import age_task, sex_task
from cardiobench.data.ecg_labels import aha_statements
from cardiobench.data.labels import label_set
from cardiobench.data.media.ecg_hdf5 import read_single_hdf5
from cardiobench.data.release_counts import expected_counts
from cardiobench.data.rows import safe_join
from cardiobench.data.spec import TOTAL
from cardiobench.data.splits import hashed_splits
from cardiobench.data.tables import Column, choice, integer, number, read_columns, text

TABLE = "metadata.csv"
FS = 500.0
GROUPS = (SEX_GROUPS, AGE_GROUPS)
STATEMENT = re.compile(r"(?P<primary>\d+)(\+\d+)*")
RARE = 10  # Minimum number of records for a statement to become a label.
# Number of records of the release as counted in `metadata.csv` by ECGBench (github.com/vlbthambawita/ECGBench,
# docs/_datasets), in agreement with the shares in the paper: 53.96 % normal, 55.36 % male. Counts of the other 42
# statements are unknown.
STATEMENTS = "Normal ECG 13905, Ventricular premature complex(es) 1067"
SEXES = "M 14265, F 11505"

SPEC = DatasetSpec(
    name="sph",
    title="SPH 12-lead ECG",
    version="1.0.0",
    modality="ecg",
    media="ecg",
    licence="CC BY 4.0",
    access="https://doi.org/10.6084/m9.figshare.c.5779802.v1",
    redistributable=True,
    detect_files=("code.csv", "records/A00001.h5"),
    expected={TOTAL: 25_770},
    columns={"age": "float64", "dx": "string"},
    tasks=(
        Task(
            "sph/aha",
            "multilabel",
            "aha",
            ("auroc_macro",),
            tuple(aha_statements().values()),
            groups=GROUPS,
            partially_labelled=True,
            description=f"primary AHA/ACC/HRS statements with at least {RARE} records",
            expected=expected_counts(f"rows 25770, {STATEMENTS}", ()),
        ),
        replace(age_task("sph", GROUPS), expected=expected_counts("rows 25770", ())),
        replace(sex_task("sph", GROUPS), expected=expected_counts(SEXES, ())),
    ),
    citation="Liu et al., A large-scale multi-label 12-lead electrocardiogram database with standardized diagnostic statements, "
    "Scientific Data 9:272 (2022)",
)


def statements(cell: str) -> tuple[str, ...]:
    """Return the unique primary statements of a cell such as `60+310;147`; modifiers follow a `+`.

    Raises:
        ValueError: The cell has an unexpected form, or a statement that is not used in the release.
    """
    matches = [STATEMENT.fullmatch(part.strip()) for part in cell.split(";")]
    codes = [match["primary"] if match else "" for match in matches]
    if set(codes) - set(aha_statements()):
        raise ValueError(cell)
    return tuple(dict.fromkeys(codes))


COLUMNS: dict[str, Column] = {
    "ECG_ID": text(r"A\d{5}", "A and five digits"),
    "AHA_Code": Column("AHA statements of the release such as 60+310;147", statements),
    "Patient_ID": text(),
    "Age": number(0, 120, optional=True),
    "Sex": choice({"M": "M", "F": "F"}, optional=True),
    "N": integer(1),
}


class Sph(CardioBuilder):
    """Rows of `metadata.csv`, one file each, split by the hash of the patient id."""

    SPEC = SPEC

    @classmethod
    def rows(cls, raw: Path) -> pd.DataFrame:
        """Return one row per record."""
        table = read_columns(raw / TABLE, COLUMNS)
        return pd.DataFrame(
            {
                "id": table["ECG_ID"],
                "patient_id": table["Patient_ID"],
                "split": hashed_splits(table["Patient_ID"]),
                "media": "records/" + table["ECG_ID"] + ".h5",
                "sex": table["Sex"],
                "age": table["Age"],
                "dx": table["AHA_Code"].str.join(","),
                "aha": _cells(table["AHA_Code"]),
            }
        ).reset_index(drop=True)

    @classmethod
    def audit_findings(cls, raw: Path, listed: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield the statements with too few records."""
        rare = rare_statements(listed["dx"].str.split(","))
        yield AuditFinding(
            f"statements with fewer than {RARE} records",
            len(rare),
            "statements",
            tuple(rare),
            "not part of the task; 9 of 44 in the release",
        )

    @classmethod
    def ecg(cls, raw: Path, row: Mapping[str, Any]) -> Ecg:
        """Return one record."""
        return read_single_hdf5(safe_join(raw, row["media"]), FS)

    @classmethod
    def recording_findings(cls, raw: Path, rows: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield the records whose length differs from the table."""
        lengths = read_columns(raw / TABLE, {name: COLUMNS[name] for name in ("ECG_ID", "N")}).set_index("ECG_ID")["N"]
        other = []
        for row in rows.to_dict("records"):
            try:
                signal = cls.ecg(raw, row).signal
            except BadMedia:
                continue  # `prepare` reports this record.
            if len(signal) != lengths[row["id"]]:
                other.append(row["id"])
        yield AuditFinding("records whose length differs from the table", len(other), "records", tuple(other))


def rare_statements(codes: pd.Series) -> list[str]:
    """Return the statements with too few records for a label.

    Args:
        codes: Codes of each record.
    """
    counts = codes.explode().map(aha_statements()).value_counts()
    return [name for name in aha_statements().values() if counts.get(name, 0) < RARE]


def _cells(codes: pd.Series) -> list[str]:
    """Return the cells of the task of all statements; each combination is computed once."""
    names, rare = aha_statements(), rare_statements(codes)
    classes = tuple(names.values())
    numbers, combinations = pd.factorize(codes)
    cells = []
    for combination in combinations:
        present = {names[code] for code in combination} - set(rare)
        cells.append(label_set(present, classes, rare))
    return [cells[number] for number in numbers]
