"""CODE-test: 827 12-lead ECGs of 827 patients, read by seven (groups of) readers (Zenodo 3765780, version 1.0.3)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from cardiobench.core.errors import BadData, BadMedia
from cardiobench.data import AGE_GROUPS, SEX_GROUPS, CardioBuilder, DatasetSpec, Ecg, Task
from cardiobench.data.ecg_labels import af_task, cd_task, conduction, fibrillation
from cardiobench.data.labels import label_set
from cardiobench.data.media.ecg_hdf5 import open_tracings, read_hdf5
from cardiobench.data.release_counts import expected_counts
from cardiobench.data.spec import ROWS
from cardiobench.data.tables import choice, flag, number, read_columns

TRACINGS, PATIENTS, GOLD = "ecg_tracings.hdf5", "attributes.csv", "annotations/gold_standard.csv"
DIAGNOSES = ("1dAVb", "RBBB", "LBBB", "SB", "ST", "AF")
POSITIVES = "rows 827, 1dAVb 28, RBBB 34, LBBB 30, SB 16, ST 37, AF 13"
LEADS = ("I", "II", "III", "aVL", "aVF", "aVR", "V1", "V2", "V3", "V4", "V5", "V6")
"""Order of the channels; in CODE-15% aVR comes first."""
GROUPS = (SEX_GROUPS, AGE_GROUPS)

SPEC = DatasetSpec(
    name="code_test",
    title="CODE-test",
    version="1.0.0",
    modality="ecg",
    media="ecg",
    licence="CC BY 4.0",
    access="https://zenodo.org/records/3765780",
    redistributable=True,
    detect_files=(TRACINGS, GOLD),
    splits=("test",),
    expected={"test": 827},
    columns={"sex": "string", "age": "float64", "dx": "string"},
    tasks=(
        cd_task("code_test", GROUPS),
        af_task("code_test", GROUPS),
        Task(
            "code_test/six",
            "multilabel",
            "six",
            ("auroc_macro",),
            DIAGNOSES,
            groups=GROUPS,
            expected={**expected_counts(POSITIVES, ()), ROWS: {"test": 827}},
            description="six diagnoses, for models trained on CODE-15%",
        ),
    ),
    citation="Ribeiro et al., Automatic diagnosis of the 12-lead ECG using a deep neural network, Nature Communications 11:1760 (2020)",
)


class CodeTest(CardioBuilder):
    """Rows of the tables, matched with the tracings by order; all rows are in the test split."""

    SPEC = SPEC

    @classmethod
    def rows(cls, raw: Path) -> pd.DataFrame:
        """Return one row per exam.

        Raises:
            BadData: The tables and the tracings have different numbers of rows and cannot be matched.
        """
        patients = read_columns(raw / PATIENTS, {"age": number(0, 120, optional=True), "sex": SEX})
        gold = read_columns(raw / GOLD, {name: flag() for name in DIAGNOSES})
        counts = {PATIENTS: len(patients), GOLD: len(gold)}
        if (raw / TRACINGS).is_file():
            try:
                counts[TRACINGS] = open_tracings(raw / TRACINGS).shape[0]
            except OSError as error:
                raise BadMedia(
                    f"{raw / TRACINGS} cannot be read as HDF5 ({error}). Download and unpack it again."
                ) from error
        if len(set(counts.values())) > 1:
            rows = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise BadData(
                f"{raw}: {rows} rows. The files are matched by row order, so all need the same number of rows; download them again."
            )
        codes = [tuple(name for name in DIAGNOSES if row[name]) for row in gold.to_dict("records")]
        names = [f"{number:03d}" for number in range(len(gold))]
        return pd.DataFrame(
            {
                "id": names,
                "patient_id": names,
                "split": "test",
                "media": TRACINGS,
                "record": range(len(gold)),
                "sex": patients["sex"].to_numpy(),
                "age": patients["age"].to_numpy(),
                "dx": [",".join(row) or None for row in codes],
                "cd": [conduction(frozenset(row), "code15") for row in codes],
                "six": [label_set(row, DIAGNOSES) for row in codes],
                "af": [fibrillation(frozenset(row), "code15") for row in codes],
            }
        )

    @classmethod
    def ecg(cls, raw: Path, row: Mapping[str, Any]) -> Ecg:
        """Return one exam, its leads in the usual order."""
        return read_hdf5(raw / row["media"], int(row["record"]), LEADS)


SEX = choice({"M": "M", "F": "F"}, optional=True)
