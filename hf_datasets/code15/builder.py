"""CODE-15%: 345,779 clinical 12-lead ECGs of 233,770 patients (Zenodo 4916206, version 1.0.0)."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadData, BadMedia, first_n
from cardiobench.data import AGE_GROUPS, SEX_GROUPS, CardioBuilder, DatasetSpec, Ecg, FrameSampling, Task
from cardiobench.data.ecg_labels import AF_CLASSES, CD_CLASSES, conduction, fibrillation
from cardiobench.data.media.ecg_hdf5 import open_tracings, read_hdf5
from cardiobench.data.rows import safe_join
from cardiobench.data.spec import TOTAL
from cardiobench.data.splits import hashed_split
from cardiobench.data.tables import Column, flag, identifier, number, read_columns, text

TABLE = "exams.csv"
DIAGNOSES = ("1dAVb", "RBBB", "LBBB", "SB", "ST", "AF")
OLDEST = 120  # years
GROUPS = (SEX_GROUPS, AGE_GROUPS)

SPEC = DatasetSpec(
    name="code15",
    title="CODE-15%",
    version="1.0.0",
    modality="ecg",
    media="ecg",
    licence="CC BY 4.0",
    access="https://zenodo.org/records/4916206",
    redistributable=True,
    detect_files=(TABLE,),
    expected={TOTAL: 345_779},
    columns={"sex": "string", "age": "float64", "dx": "string", "normal_ecg": "bool"},
    tasks=(
        Task(
            "code15/cd", "binary", "cd", ("f1_macro",), CD_CLASSES, groups=GROUPS, description="conduction disturbance"
        ),
        Task("code15/af", "binary", "af", ("f1_macro",), AF_CLASSES, groups=GROUPS, description="atrial fibrillation"),
    ),
    citation="Ribeiro et al., CODE-15%: a large scale annotated dataset of 12-lead ECGs, Zenodo (2021), doi:10.5281/zenodo.4916206",
)


class Code15(CardioBuilder):
    """Exams of `exams.csv` with their rows in the HDF5 parts; split by the hash of the patient's id."""

    SPEC = SPEC

    @classmethod
    def rows(cls, raw: Path) -> Iterator[dict]:
        """Yield one row per exam; one that its part lacks is listed with a file that is not there, so that it is named and counted."""
        table = exams(raw)
        stored = {part: set(ids.tolist()) for part, ids in _stored(raw).items()}
        for exam in table.to_dict("records"):
            name, part, patient = exam["exam_id"], exam["trace_file"], exam["patient_id"]
            codes = frozenset(code for code in DIAGNOSES if exam[code])
            here = part not in stored or int(name) in stored[part]
            yield {
                "id": name,
                "patient_id": patient,
                "split": hashed_split(patient),
                "media": part if here else f"{part}/{name}",
                "record": name,
                "sex": {True: "M", False: "F"}.get(exam["is_male"]),
                "age": exam["age"],
                "dx": ",".join(code for code in DIAGNOSES if code in codes) or None,
                "normal_ecg": exam["normal_ecg"],
                "cd": conduction(codes, "code15"),
                "af": fibrillation(codes, "code15"),
            }

    @classmethod
    def excluded(cls, raw: Path) -> Mapping[str, tuple[str, ...]]:
        """Return the tracings without a line in the table; the row that closes each part is none."""
        table = read_columns(raw / TABLE, {name: COLUMNS[name] for name in ("exam_id", "trace_file")})
        listed = set(table["trace_file"] + "/" + table["exam_id"])
        unlisted = []
        for part, ids in _stored(raw).items():
            names = [f"{part}/{exam}" for exam in ids.tolist()]
            closing = len(names) - 1 if names and ids[-1] == 0 else len(names)
            unlisted += [name for name in names[:closing] if name not in listed]
        return {f"tracings that {TABLE} does not list": tuple(unlisted)}

    @classmethod
    def recording(cls, raw: Path, row: Mapping[str, Any], sampling: FrameSampling | None = None) -> Ecg:
        """Return one exam, from the part that `rows` has looked into."""
        return read_hdf5(_part(raw, row["media"]), row["record"])

    @classmethod
    def media(cls, raw: Path, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the signal in mV and rate."""
        ecg = cls.recording(raw, row)
        return {"ecg": ecg.signal, "fs": ecg.fs}


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
    """Return the table of exams: ids as text, flags as bool, ages that nobody has and unknown sexes null."""
    table = read_columns(raw / TABLE, COLUMNS)
    table["age"] = table["age"].where(table["age"].between(0, OLDEST))
    return table


def _stored(raw: Path) -> dict[str, np.ndarray]:
    """Return part -> exam ids of its tracings, in their order, for every part that is here.

    Raises:
        BadData: an exam id that stands more than once in a part.
        BadMedia: a part that is no HDF5 file of this layout.
    """
    stored = {}
    for path in sorted(raw.glob("exams_part*.hdf5")):
        try:
            ids = open_tracings(safe_join(raw, path.name)).exam_ids
        except OSError as error:
            raise BadMedia(
                f"{path} cannot be read as HDF5 ({' '.join(str(error).split())}). Download and unpack it again."
            ) from error
        if ids is None:
            raise BadMedia(f"{path} has no `exam_id` for each of its tracings. Download and unpack it again.")
        values, counts = np.unique(ids, return_counts=True)
        if (counts > 1).any():
            repeated = values[counts > 1]
            raise BadData(
                f"{path}: {len(repeated)} exam ids stand more than once: {first_n(repeated)}. Download it again."
            )
        stored[path.name] = ids
    return stored
