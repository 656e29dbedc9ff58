"""EchoNet-Pediatric: apical four-chamber and parasternal short-axis videos of children with their ejection fraction (Stanford)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadData, MissingData
from cardiobench.data import SEX_GROUPS, VIEWS, CardioBuilder, DatasetSpec, Group, PromptGrid, Task
from cardiobench.data.dense import CAVITY, UNKNOWN_FRAME, DenseLabel, Reading, read_label
from cardiobench.data.tables import Column, choice, integer, number, read_columns, text
from cardiobench.data.tracings import fill_tracing

FOLDS = {0: "test", 1: "validation", **dict.fromkeys(range(2, 10), "train")}
PICTURED = ("A4C", "PSAX")
CHILD_AGE = Group("age", "age", edges=(1.0, 5.0, 12.0, 18.0), labels=("0-1", "2-5", "6-12", "13-18", ">18"))
THIRDS = ("lower third", "middle third", "upper third")
FEWEST = 9  # Minimum number of training videos for cutting an age range into thirds.
GROUPS = (SEX_GROUPS, CHILD_AGE, Group("bmi_for_age", "bmi_for_age", labels=THIRDS))

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
        "lv_seg": "float64",
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
            description="ejection fraction of a child, per video, both views",
        ),
        Task(
            "echonet_pediatric/view",
            "multiclass",
            "view",
            ("f1_macro",),
            VIEWS,
            groups=(CHILD_AGE,),
            description="echo view of each video",
        ),
    ),
    dense_tasks=(
        Task(
            "echonet_pediatric/lv_seg",
            "segmentation",
            "lv_seg",
            ("dice",),
            structures=(CAVITY,),
            unit_column="patient_id",
            groups=(SEX_GROUPS, CHILD_AGE),
            description="cavity of the left ventricle at end-diastole and end-systole of each child, both views",
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
SIZE = (112, 112)  # Height and width of every video.
FRAME = re.compile(r"(?P<frame>[0-9]{1,9})(\.0*)?")
UNTRACED = ("No Systolic", "No Diastolic")
TRACED = {"FileName": text(), "Frame": text()}
CORNERS = {"X": number(optional=True), "Y": number(optional=True)}


def thirds_for_age(bmi: pd.Series, age: pd.Series, train: pd.Series) -> pd.Series:
    """Return the tercile of the body mass index among training videos of the same age range; null if unknown.

    The BMI of a child can only be judged by age, so a single threshold for all ages is not used.
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
    """Rows of both `FileList.csv`; fold 0 is the test split, fold 1 validation, all others train."""

    SPEC = SPEC

    @classmethod
    def listed(cls, raw: Path) -> pd.DataFrame:
        """Return both tables, concatenated, with a column `view`; EF may be empty."""
        tables = []
        for view in PICTURED:
            path = raw / view / "FileList.csv"
            if not path.is_file():
                raise MissingData(
                    f"EchoNet-Pediatric: {view}/FileList.csv is missing from {raw}. Complete the download."
                )
            table = read_columns(path, COLUMNS).assign(view=view)
            tables.append(table)
        table = pd.concat(tables, ignore_index=True)
        table["split"] = table["Split"].map(FOLDS)
        table["bmi"] = table["Weight"] / (table["Height"].where(table["Height"] > 0) / 100) ** 2
        table["bmi_for_age"] = thirds_for_age(table["bmi"], table["Age"], table["split"] == "train")
        return table

    @classmethod
    def rows(cls, raw: Path) -> Iterator[dict]:
        """Yield one row per video; the first part of its name is the patient, the first two parts are the visit."""
        table = cls.listed(raw)
        tables = {view: cls.tracings(raw, view, TRACED) for view in PICTURED}
        traced = {
            view: table[~table["Frame"].isin(UNTRACED)].groupby("FileName")["Frame"].nunique()
            for view, table in tables.items()
        }
        for row in table[table["EF"].notna()].itertuples():
            name = _video(row.FileName)
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
                "lv_seg": traced[row.view].get(name),
            }

    @classmethod
    def label_files(cls, raw: Path) -> tuple[str, ...]:
        """Return the tables of tracings."""
        return tuple(file for view in PICTURED if (raw / (file := f"{view}/VolumeTracings.csv")).is_file())

    @classmethod
    def tracings(cls, raw: Path, view: str, columns: Mapping[str, Column]) -> pd.DataFrame:
        """Return columns of a view's `VolumeTracings.csv`, with names with extension.

        No rows if the file is missing.
        """
        path = raw / view / "VolumeTracings.csv"
        if not path.is_file():
            return pd.DataFrame(columns=list(columns))
        table = read_columns(path, columns)
        return table.assign(FileName=table["FileName"].map(_video))

    @classmethod
    def dense_labels(cls, raw: Path, task: Task, rows: pd.DataFrame) -> Iterator[DenseLabel]:
        """Yield the traced frames of each video; of two frames, the one with the larger area is end-diastole."""
        tracings = {
            view: dict(tuple(cls.tracings(raw, view, TRACED | CORNERS).groupby("FileName", sort=False)))
            for view in PICTURED
        }
        for row in rows.to_dict("records"):
            traced = tracings[row["view"]][row["id"]]
            labels = []
            # A repeated point would turn the outline inside out.
            for name, corners in traced.drop_duplicates().groupby("Frame", sort=False):
                source = (
                    f"{raw / row['view'] / 'VolumeTracings.csv'}, line {corners.index[0]} ({row['id']}, frame {name})"
                )
                frame = int(number["frame"]) if (number := FRAME.fullmatch(name)) else UNKNOWN_FRAME
                read = partial(cls.read_tracing, corners[list(CORNERS)].to_numpy(), frame, name, source)
                labels.append(read_label(task, row, frame, read))
            areas = [0 if label.mask is None else int(label.mask.sum()) for label in labels]
            for label, area in zip(labels, areas, strict=True):
                phases = {max(areas): "ED", min(areas): "ES"} if len(set(areas)) == 2 and min(areas) else {}
                yield replace(label, phase=phases.get(area))

    @staticmethod
    def read_tracing(corners: np.ndarray, frame: int, name: str, source: str) -> Reading:
        """Fill the outline (n, 2) of a frame; `name` is its name in the table."""
        if name in UNTRACED:
            raise BadData(
                f"{source}: this phase was not traced. Nothing needs to be done, because coverage does not count it."
            )
        if frame == UNKNOWN_FRAME:
            raise BadData(
                f"{source}: expected a frame counted from 0 or {' or '.join(UNTRACED)}. Correct the rows, or download the table again."
            )
        return {"mask": fill_tracing(corners, SIZE, source)}

    @classmethod
    def excluded(cls, raw: Path, rows: pd.DataFrame) -> Mapping[str, tuple[str, ...]]:
        """Return the videos without an ejection fraction."""
        table = cls.listed(raw)
        return {"video without an ejection fraction": tuple(table.loc[table["EF"].isna(), "FileName"])}


def _video(name: str) -> str:
    return name if name.lower().endswith(".avi") else f"{name}.avi"
