"""EchoNet-Pediatric: apical four-chamber and parasternal short-axis videos of children with their ejection fraction (Stanford)."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import MissingData
from cardiobench.data import SEX_GROUPS, VIEWS, CardioBuilder, DatasetSpec, Group, PromptGrid, Task
from cardiobench.data.tables import choice, integer, number, read_columns, text

FOLDS = {0: "test", 1: "validation", **dict.fromkeys(range(2, 10), "train")}
PICTURED = ("A4C", "PSAX")
CHILD_AGE = Group("age", "age", edges=(1.0, 5.0, 12.0, 18.0), labels=("0-1", "2-5", "6-12", "13-18", ">18"))
THIRDS = ("lower third", "middle third", "upper third")
FEWEST = 9  # training videos of an age range, below which it is not cut into thirds
GROUPS = (SEX_GROUPS, CHILD_AGE, Group("bmi_for_age", "bmi_for_age"))

SPEC = DatasetSpec(
    name="echonet_pediatric",
    title="EchoNet-Pediatric",
    version="1.0.0",
    modality="echo",
    media="video",
    licence="Stanford University research use agreement; no redistribution",
    access="https://echonet.github.io/pediatric/",
    redistributable=False,
    detect_files=("A4C/FileList.csv", "PSAX/FileList.csv"),
    columns={
        "key_frame": "int64",
        "fold": "int64",
        "sex": "string",
        "age": "float64",
        "bmi": "float64",
        "bmi_for_age": "string",
    },
    tasks=(
        Task(
            "echonet_pediatric/ef",
            "regression",
            "ef",
            ("mae",),
            unit="%",
            label_range=(0, 100),
            groups=GROUPS,
            prompt_grid=PromptGrid(0, 100, 1),
            description="ejection fraction of a child, a video at a time, both views",
        ),
        Task(
            "echonet_pediatric/view",
            "multiclass",
            "view",
            ("f1_macro",),
            VIEWS,
            groups=(CHILD_AGE,),
            description="echo view, a video at a time",
        ),
    ),
    citation="Reddy et al., Video-based deep learning for automated assessment of left ventricular ejection fraction in pediatric patients, JASE 36:482 (2023)",
)

COLUMNS = {
    "FileName": text(r"[^-]+-.+", "<patient>-<visit>-<number>.avi"),
    "EF": number(0, 100, unit="%", optional=True),
    "Sex": choice({"F": "F", "M": "M", "U": None, "O": None}, optional=True),
    "Age": number(0, optional=True),
    "Weight": number(0, optional=True),
    "Height": number(0, optional=True),
    "Split": integer(0, 9),
}


def thirds_for_age(bmi: pd.Series, age: pd.Series, train: pd.Series) -> pd.Series:
    """Return the third of the body mass index among training videos of the same age range; null where it or the age is unknown.

    A child's BMI means something only for its age, so no cut-off for all ages, let alone an adult's, is used.
    """
    ranges = pd.cut(age, [-np.inf, *CHILD_AGE.edges, np.inf], labels=CHILD_AGE.labels)
    third = pd.Series(None, index=bmi.index, dtype=object)
    for name in ranges.dropna().unique():
        in_range = (ranges == name) & bmi.notna()
        if (in_range & train).sum() >= FEWEST:
            edges = np.quantile(bmi[in_range & train], (1 / 3, 2 / 3))
            third[in_range] = np.array(THIRDS, dtype=object)[np.digitize(bmi[in_range], edges, right=True)]
    return third


class EchonetPediatric(CardioBuilder):
    """Rows of both `FileList.csv`; fold 0 tests, fold 1 validates, the others train."""

    SPEC = SPEC

    @classmethod
    def listed(cls, raw: Path) -> pd.DataFrame:
        """Return both tables one below the other, with `view`; EF may be empty."""
        tables = []
        for view in PICTURED:
            path = raw / view / "FileList.csv"
            if not path.is_file():
                raise MissingData(f"EchoNet-Pediatric: {view}/FileList.csv is not in {raw}. Complete the download.")
            table = read_columns(path, COLUMNS).assign(view=view)
            tables.append(table)
        table = pd.concat(tables, ignore_index=True)
        table["split"] = table["Split"].map(FOLDS)
        table["bmi"] = table["Weight"] / (table["Height"].where(table["Height"] > 0) / 100) ** 2
        table["bmi_for_age"] = thirds_for_age(table["bmi"], table["Age"], table["split"] == "train")
        return table

    @classmethod
    def rows(cls, raw: Path) -> Iterator[dict]:
        """Yield one row per video; the patient is the first part of its name, the visit the first two."""
        table = cls.listed(raw)
        for row in table[table["EF"].notna()].itertuples():
            name = row.FileName if row.FileName.lower().endswith(".avi") else f"{row.FileName}.avi"
            yield {
                "id": name,
                "patient_id": name.partition("-")[0],
                "study_id": "-".join(name.split("-")[:2]),
                "split": row.split,
                "media": f"{row.view}/Videos/{name}",
                "view": row.view,
                "key_frame": 0,
                "fold": row.Split,
                "sex": row.Sex,
                "age": row.Age,
                "bmi": row.bmi,
                "bmi_for_age": row.bmi_for_age,
                "ef": row.EF,
            }

    @classmethod
    def excluded(cls, raw: Path) -> Mapping[str, tuple[str, ...]]:
        """Return the videos without an ejection fraction."""
        table = cls.listed(raw)
        return {"video without an ejection fraction": tuple(table.loc[table["EF"].isna(), "FileName"])}
