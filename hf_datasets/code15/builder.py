"""CODE-15%: 345,779 clinical 12-lead ECGs of 233,770 patients (Zenodo 4916206, version 1.0.0)."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cardiobench.core.errors import BadData, BadMedia, first_n, one_line
from cardiobench.data import AGE_GROUPS, SEX_GROUPS, CardioBuilder, DatasetSpec, Ecg, Task
from cardiobench.data.demographics import age_task, sex_task
from cardiobench.data.ecg_labels import af_task, cd_task, conduction, fibrillation
from cardiobench.data.labels import label_set
from cardiobench.data.media.ecg_hdf5 import open_tracings, read_hdf5
from cardiobench.data.release_counts import expected_counts
from cardiobench.data.rows import safe_join
from cardiobench.data.spec import TOTAL
from cardiobench.data.splits import hashed_splits
from cardiobench.data.tables import Column, flag, identifier, number, read_columns, text

TABLE = "exams.csv"
DIAGNOSES = ("1dAVb", "RBBB", "LBBB", "SB", "ST", "AF")
OLDEST = 120  # Years.
GROUPS = (SEX_GROUPS, AGE_GROUPS)
POSITIVES = "1dAVb 5716, RBBB 9672, LBBB 6026, SB 5605, ST 7584, AF 7033"
NORMAL = 134_657  # Records labelled normal in the release.
ANY = 37_775  # Records with at least one of the six diagnoses.


def _six(target: str, rows: int, description: str) -> Task:
    """Return the task of the six diagnoses."""
    return Task(
        f"code15/{target}",
        "multilabel",
        target,
        ("auroc_macro",),
        DIAGNOSES,
        groups=GROUPS,
        expected=expected_counts(f"rows {rows}, {POSITIVES}", ()),
        description=description,
    )


SPEC = DatasetSpec(
    name="code15",
    title="CODE-15%",
    version="1.1.0",
    modality="ecg",
    media="ecg",
    licence="CC BY 4.0",
    access="https://zenodo.org/records/4916206",
    redistributable=True,
    detect_files=(TABLE,),
    expected={TOTAL: 345_779},
    columns={"sex": "string", "age": "float64", "dx": "string", "normal_ecg": "bool"},
    tasks=(
        cd_task("code15", GROUPS),
        af_task("code15", GROUPS),
        _six("six", 345_779, "six diagnoses"),
        _six("six_clean", ANY + NORMAL, "six diagnoses, against records labelled normal in the release"),
        age_task("code15", GROUPS),
        sex_task("code15", GROUPS),
    ),
    citation="Ribeiro et al., CODE-15%: a large scale annotated dataset of 12-lead ECGs, Zenodo (2021), doi:10.5281/zenodo.4916206",
)


class Code15(CardioBuilder):
    """Exams of `exams.csv` with their rows in the HDF5 parts, split by the hash of the patient id."""

    SPEC = SPEC

    @classmethod
    def rows(cls, raw: Path) -> pd.DataFrame:
        """Return one row per exam.

        An exam missing from its part has a nonexistent file, so it is reported and counted.
        """
        table = exams(raw)
        ids, lacking = pa.array(table["exam_id"], pa.string()), np.zeros(len(table), dtype=bool)
        rows_of = table.groupby("trace_file", sort=False).indices
        for part, stored in _stored(raw).items():
            rows = rows_of.get(part, np.array([], dtype=int))
            lacking[rows] = ~_contained(ids.take(rows), stored)
        # Values derived from diagnoses are computed once per combination, encoded as a binary number.
        codes = sum(table.pop(code).to_numpy(np.int64) << bit for bit, code in enumerate(DIAGNOSES))
        sets = range(1 << len(DIAGNOSES))
        named = [tuple(code for bit, code in enumerate(DIAGNOSES) if number >> bit & 1) for number in sets]
        diagnoses = pd.DataFrame(
            {
                "dx": [",".join(names) or None for names in named],
                "cd": [conduction(frozenset(names), "code15") for names in named],
                "af": [fibrillation(frozenset(names), "code15") for names in named],
                "six": [label_set(names, DIAGNOSES) for names in named],
            }
        )
        rows = pd.DataFrame(
            {
                "id": table["exam_id"],
                "patient_id": table["patient_id"],
                "split": hashed_splits(table["patient_id"]),
                "media": table["trace_file"].mask(
                    lacking, table["trace_file"][lacking] + "/" + table["exam_id"][lacking]
                ),
                "record": table["exam_id"],
                "sex": table.pop("is_male").map({True: "M", False: "F"}),
                "age": table["age"],
                "normal_ecg": table["normal_ecg"],
                **{name: column.to_numpy()[codes] for name, column in diagnoses.items()},
            },
            copy=False,
        )
        # Half of the records have none of the six diagnoses but are not labelled normal either.
        unclear = (rows["six"] == "") & ~rows["normal_ecg"].astype(bool)
        rows["six_clean"] = rows["six"].mask(unclear, None)
        rows.index = pd.RangeIndex(len(rows))
        return rows

    @classmethod
    def excluded(cls, raw: Path, rows: pd.DataFrame) -> Mapping[str, tuple[str, ...]]:
        """Return the tracings without a line in the table; the final row of each part is not a tracing."""
        rows_of = rows.groupby("media", sort=False).indices
        ids, unlisted = pa.array(rows["id"], pa.string()), []
        for part, stored in _stored(raw).items():
            exams_of = stored[:-1] if len(stored) and stored[-1].as_py() == "0" else stored
            listed = ids.take(rows_of.get(part, np.array([], dtype=int)))
            if len(listed) != len(exams_of):  # All rows of a part are among its tracings.
                unlisted += [f"{part}/{exam}" for exam in exams_of.filter(~_contained(exams_of, listed)).to_pylist()]
        return {f"tracings missing from {TABLE}": tuple(unlisted)}

    @classmethod
    def ecg(cls, raw: Path, row: Mapping[str, Any]) -> Ecg:
        """Return one exam from its part."""
        return read_hdf5(_part(raw, row["media"]), row["record"])


@cache
def _part(raw: Path, name: str) -> Path:
    return raw / name


COLUMNS: dict[str, Column] = {
    "exam_id": identifier(),
    "patient_id": identifier(),
    "age": number(optional=True),
    "is_male": flag(optional=True),
    **{code: flag() for code in DIAGNOSES},
    "normal_ecg": flag(),
    "trace_file": text(),
}


def exams(raw: Path) -> pd.DataFrame:
    """Return the table of exams: ids as text, flags as bool, implausible ages and unknown sexes as null."""
    table = read_columns(raw / TABLE, COLUMNS)
    table["age"] = table["age"].where(table["age"].between(0, OLDEST))
    return table


def _contained(names: pa.Array, others: pa.Array) -> np.ndarray:
    """Return which names are among others. The array is bool (n,)."""
    return pc.is_in(names, value_set=others).to_numpy(zero_copy_only=False)


def _stored(raw: Path) -> dict[str, pa.Array]:
    """Return a mapping from part to exam ids of its tracings as text, in order, for every available part.

    Raises:
        BadData: An exam id occurs more than once in a part.
        BadMedia: A part is not an HDF5 file of this layout.
    """
    stored = {}
    for path in sorted(raw.glob("exams_part*.hdf5")):
        try:
            ids = open_tracings(safe_join(raw, path.name)).exam_ids
        except OSError as error:
            raise BadMedia(
                f"{path} cannot be read as HDF5 ({one_line(error)}). Download and unpack it again."
            ) from error
        if ids is None:
            raise BadMedia(f"{path} does not have one `exam_id` per tracing. Download and unpack it again.")
        values, counts = np.unique(ids, return_counts=True)
        if (counts > 1).any():
            repeated = values[counts > 1]
            raise BadData(
                f"{path}: {len(repeated)} exam ids occur more than once: {first_n(repeated)}. Download it again."
            )
        stored[path.name] = pa.array(ids).cast(pa.string())
    return stored
