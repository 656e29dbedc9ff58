"""Builder of PTB-XL 1.0.3, shared by the datasets of its records at both rates and of the bundled sample."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from cardiobench.data import ptb_xl_plus
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.builder import CardioBuilder
from cardiobench.data.demographics import age_task, sex_task
from cardiobench.data.ecg_labels import af_task, cd_task, conduction, fibrillation
from cardiobench.data.ptb_xl_labels import (
    CLASSES,
    DESCRIPTIONS,
    GRANULARITIES,
    OLDEST,
    OVER_89,
    REMOVED,
    expected_positives,
    statement_labels,
)
from cardiobench.data.spec import AGE_GROUPS, DatasetSpec, Group, Task
from cardiobench.data.tables import Column, choice, identifier, integer, number, read_columns, text

GROUPS = (Group("sex", "sex"), Group("age", "age_group", labels=AGE_GROUPS.labels))


def _several(name: str, target: str) -> Task:
    """Return a task whose recordings can have several statements."""
    return Task(
        f"{name}/{target}",
        "multilabel",
        target,
        ("auroc_macro",),
        CLASSES[target],
        groups=GROUPS,
        expected=expected_positives(target),
        description=f"{len(CLASSES[target])} {DESCRIPTIONS[target]}",
    )


def release_spec(name: str, title: str, replaces: tuple[str, ...] = ()) -> DatasetSpec:
    """Return the facts of the release under the name and title of a dataset, which replaces other forms of it."""
    return DatasetSpec(
        name=name,
        title=title,
        replaces=replaces,
        version="1.1.0",
        modality="ecg",
        media="ecg",
        licence="CC BY 4.0",
        access="https://physionet.org/content/ptb-xl/1.0.3/",
        redistributable=True,
        detect_files=("ptbxl_database.csv",),
        # Folds 1-8, 9 and 10 of the release, respectively.
        expected={"train": 17418, "validation": 2183, "test": 2198},
        columns={
            "sex": "string",
            "age": "float64",
            "age_group": "string",
            "strat_fold": "int64",
            "scp_codes": "string",
            "cd_paper": "string",
        },
        tasks=(
            cd_task(name, GROUPS),
            af_task(name, GROUPS),
            *(_several(name, target) for target in GRANULARITIES),
            age_task(name, GROUPS),
            sex_task(name, GROUPS),
            *ptb_xl_plus.interval_tasks(name, GROUPS),
        ),
        citation="Wagner et al., PTB-XL, a large publicly available electrocardiography dataset, Scientific Data 7:154 (2020)",
    )


def age_group(age: float) -> str | None:
    """Return the age ranges of the benchmark; ages above 89, which the release hides, also have a range."""
    if pd.isna(age):
        return None
    return "≤45" if age <= 45 else "46-65" if age <= 65 else "66-80" if age <= 80 else ">80"


def statements(text: str) -> frozenset[str]:
    """Return the SCP statements of a `scp_codes` cell regardless of likelihood, because 0 means "not stated".

    Raises:
        ValueError: The cell is not a dictionary of known statements.
    """
    try:
        content = ast.literal_eval(text)
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(text) from error
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise ValueError(text)
    codes = frozenset(name.upper() for name in content)
    if codes - set(GRANULARITIES["all"]):
        raise ValueError(text)
    return codes


COLUMNS = {
    "ecg_id": integer(1),
    "patient_id": identifier(),
    "age": number(0, OVER_89, optional=True),
    "sex": choice({"0": "M", "1": "F", "0.0": "M", "1.0": "F"}, optional=True),
    "scp_codes": Column("SCP statements of the release such as {'NORM': 100.0}", lambda cell: (cell, statements(cell))),
    "strat_fold": integer(1, 10),
}


class PtbXlBuilder(CardioBuilder):
    """Rows of `ptbxl_database.csv` with the 100 Hz recordings; folds 1-8 are train, 9 validation and 10 test.

    Attributes:
        FILENAME: Column that names the recordings: `filename_lr` at 100 Hz, `filename_hr` at 500 Hz.
    """

    FILENAME = "filename_lr"

    @classmethod
    def split(cls, fold: int) -> str:
        """Return the split of a stratification fold."""
        return "train" if fold <= 8 else "validation" if fold == 9 else "test"

    @classmethod
    def rows(cls, raw: Path | None) -> Iterator[dict]:
        """Yield one row per record; `sex` is 0 = male, 1 = female in the release, and ages over 89 are hidden, as in 1.0.3."""
        assert raw is not None, "the release is a folder"
        table = read_columns(raw / "ptbxl_database.csv", COLUMNS | {cls.FILENAME: text()})
        features = ptb_xl_plus.find_features(raw)
        intervals = ptb_xl_plus.measurements(features).to_dict("index") if features else {}
        for row in table.itertuples():
            if row.ecg_id in REMOVED:
                continue
            scp_codes, codes = row.scp_codes
            hidden = row.age > OLDEST
            yield {
                "id": f"{row.ecg_id:05d}",
                "patient_id": row.patient_id,
                "split": cls.split(row.strat_fold),
                "media": f"{getattr(row, cls.FILENAME)}.dat",
                "sex": row.sex,
                "age": None if hidden else row.age,
                "age_group": age_group(row.age),
                "strat_fold": row.strat_fold,
                "scp_codes": scp_codes,
                # A record without any statement is not a negative.
                "cd_paper": conduction(codes, "scp", "paper") if codes else None,
                "cd": conduction(codes, "scp") if codes else None,
                "af": fibrillation(codes, "scp") if codes else None,
                **{target: statement_labels(codes, target) for target in GRANULARITIES},
                **intervals.get(row.ecg_id, {}),
            }

    @classmethod
    def audit_findings(cls, raw: Path | None, listed: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield the disagreement between the algorithms of PTB-XL+, if it is available."""
        assert raw is not None, "the release is a folder"
        features = ptb_xl_plus.find_features(raw)
        if features:
            yield from ptb_xl_plus.audit_findings(features, cls.SPEC.name)

    @classmethod
    def excluded(cls, raw: Path | None, rows: pd.DataFrame) -> Mapping[str, tuple[str, ...]]:
        """Return the records that release 1.0.3 removed; if there are any, the copy is older."""
        assert raw is not None, "the release is a folder"
        ids = read_columns(raw / "ptbxl_database.csv", {"ecg_id": COLUMNS["ecg_id"]})["ecg_id"]
        removed = tuple(f"{number:05d}" for number in sorted(REMOVED & set(ids)))
        return {"records that release 1.0.3 removed: this copy is older": removed} if removed else {}
