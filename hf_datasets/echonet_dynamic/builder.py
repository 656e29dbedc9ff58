"""EchoNet-Dynamic: 10,030 apical four-chamber videos with their ejection fraction (Stanford)."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadData
from cardiobench.data import VIEWS, CardioBuilder, DatasetSpec, PromptGrid, Task
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.dense import CAVITY, DenseLabel, Reading, read_label
from cardiobench.data.tables import Column, choice, integer, number, read_columns, text
from cardiobench.data.tracings import chords_outline, fill_tracing, solidity

SPLIT = {"TRAIN": "train", "VAL": "validation", "TEST": "test"}

SPEC = DatasetSpec(
    name="echonet_dynamic",
    title="EchoNet-Dynamic",
    version="1.0.0",
    modality="echo",
    media="video",
    licence="Stanford University research use agreement; no redistribution",
    access="https://echonet.github.io/dynamic/",
    redistributable=False,
    detect_files=("FileList.csv", "EchoNet-Dynamic/FileList.csv"),
    expected={"train": 7465, "validation": 1288, "test": 1277},
    columns={
        "key_frame": "int64",
        "fps": "float64",
        "n_frames": "int64",
        "esv": "float64",
        "edv": "float64",
        "lv_seg": "float64",
    },
    tasks=(
        Task(
            "echonet_dynamic/ef",
            "regression",
            "ef",
            ("mae",),
            unit="%",
            label_range=(0, 100),
            prompt_grid=PromptGrid(0, 100, 1),
            description="ejection fraction of each video; one video per patient",
        ),
        Task(
            "echonet_dynamic/view",
            "multiclass",
            "view",
            ("f1_macro",),
            VIEWS,
            description="echo view of each video; all are A4C",
        ),
    ),
    dense_tasks=(
        Task(
            "echonet_dynamic/lv_seg",
            "segmentation",
            "lv_seg",
            ("dice",),
            structures=(CAVITY,),
            description="cavity of the left ventricle at end-diastole and end-systole of each video",
        ),
    ),
    citation="Ouyang et al., Video-based AI for beat-to-beat assessment of cardiac function, Nature 580:252 (2020)",
)

COLUMNS = {
    "FileName": text(),
    "EF": number(0, 100, unit="%"),
    "ESV": number(0, optional=True),
    "EDV": number(0, optional=True),
    "FPS": number(0, optional=True),
    "NumberOfFrames": number(0, optional=True),
    "Split": choice(SPLIT),
}
SIZE = (112, 112)  # Height and width of every video.
TRACED = {"FileName": text(), "Frame": integer(-(2**31), 2**31)}
ENDS = {name: number(optional=True) for name in ("X1", "Y1", "X2", "Y2")}
LEAST_SOLID = 0.8
"""Ratio of the area of a tracing to that of its convex hull, below which the audit reports it."""


class EchonetDynamic(CardioBuilder):
    """Rows of `FileList.csv`, in the release's own split."""

    SPEC = SPEC

    @classmethod
    def base(cls, raw: Path) -> Path:
        """Return the folder that holds `FileList.csv` and `Videos`."""
        return raw if (raw / "FileList.csv").is_file() else raw / "EchoNet-Dynamic"

    @classmethod
    def rows(cls, raw: Path) -> Iterator[dict]:
        """Yield one row per video; the release has one video per patient."""
        base = cls.base(raw)
        table = read_columns(base / "FileList.csv", COLUMNS)
        videos = (base.relative_to(raw) / "Videos").as_posix()
        traced = cls.tracings(raw, TRACED).groupby("FileName")["Frame"].nunique()
        for row in table.itertuples():
            # The release writes the name without its extension; some copies include it.
            stem = _stem(row.FileName)
            yield {
                "id": stem,
                "patient_id": stem,
                "split": row.Split,
                "media": f"{videos}/{stem}.avi",
                "view": "A4C",
                "key_frame": 0,
                "fps": row.FPS,
                "n_frames": row.NumberOfFrames,
                "esv": row.ESV,
                "edv": row.EDV,
                "ef": row.EF,
                # As in the release's own loader, a video with a single traced frame counts as untraced.
                "lv_seg": 2.0 if traced.get(stem, 0) > 1 else None,
            }

    @classmethod
    def label_files(cls, raw: Path) -> tuple[str, ...]:
        """Return the table of tracings."""
        path = cls.base(raw) / "VolumeTracings.csv"
        return (path.relative_to(raw).as_posix(),) if path.is_file() else ()

    @classmethod
    def tracings(cls, raw: Path, columns: Mapping[str, Column]) -> pd.DataFrame:
        """Return columns of `VolumeTracings.csv`, with names without extension; no rows if the file is missing."""
        files = cls.label_files(raw)
        if not files:
            return pd.DataFrame(columns=list(columns))
        table = read_columns(raw / files[0], columns)
        return table.assign(FileName=table["FileName"].map(_stem))

    @classmethod
    def dense_labels(cls, raw: Path, task: Task, rows: pd.DataFrame) -> Iterator[DenseLabel]:
        """Yield the first and the last traced frame of each video: end-systole and end-diastole, in this order."""
        tracings = dict(tuple(cls.tracings(raw, TRACED | ENDS).groupby("FileName", sort=False)))
        table = cls.base(raw) / "VolumeTracings.csv"
        for row in rows.to_dict("records"):
            traced = tracings[row["id"]]
            frames = traced["Frame"].drop_duplicates()
            for phase, frame in (("ES", frames.iloc[0]), ("ED", frames.iloc[-1])):
                # A repeated chord would turn the outline inside out.
                chords = traced[traced["Frame"] == frame].drop_duplicates()
                source = f"{table}, line {chords.index[0]} ({row['id']}, frame {frame})"
                read = partial(cls.read_tracing, chords[list(ENDS)].to_numpy(), int(frame), source)
                yield read_label(task, row, int(frame), read, phase=phase)

    @staticmethod
    def read_tracing(chords: np.ndarray, frame: int, source: str) -> Reading:
        """Fill the outline through the ends of the chords (n, 4); the first chord is the long axis."""
        if frame < 0:
            raise BadData(f"{source}: frames are counted from 0. Correct the rows, or download the table again.")
        return {"mask": fill_tracing(chords_outline(chords, source), SIZE, source)}

    @classmethod
    def audit_findings(cls, raw: Path, listed: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield the videos without two traced frames, and tracings whose chords are not in order."""
        few = listed.loc[listed["lv_seg"].isna(), "id"]
        yield AuditFinding("videos without two traced frames (no lv_seg)", len(few), "videos", tuple(few))
        crossed = tuple(
            f"{name} frame {frame}"
            for (name, frame), rows in cls.tracings(raw, TRACED | ENDS).groupby(["FileName", "Frame"], sort=False)
            if len(rows) > 2
            and rows[list(ENDS)].notna().all(axis=None)
            and solidity(chords_outline(rows[list(ENDS)].to_numpy(), "")) < LEAST_SOLID
        )
        yield AuditFinding("tracings whose chords are not in order", len(crossed), "tracings", crossed)


def _stem(name: str) -> str:
    return name[:-4] if name[-4:].lower() == ".avi" else name
