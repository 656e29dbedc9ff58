"""Echo phantom: generated cines of a beating left ventricle whose ejection fraction, sizes and view are known exactly."""

from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.data import AGE_GROUPS, SEX_GROUPS, VIEWS, CardioBuilder, DatasetSpec, Group, PromptGrid, Task
from cardiobench.data.dense import CAVITY, MYOCARDIUM, POINTS, DenseLabel, Reading, read_label
from cardiobench.data.phantom.cache import cached_bytes
from cardiobench.data.phantom.echo import (
    EchoRecord,
    EchoTruth,
    calipers,
    cm_per_pixel,
    echo_clip,
    echo_mask,
    echo_patients,
    end_systole,
)

PATIENTS, SEED, FPS = 150, 0, 30.0
QUALITY = Group("image_quality", "image_quality", labels=("Poor", "Medium", "Good"))
BMI = Group("bmi", "bmi", edges=(18.5, 25.0, 30.0), labels=("<18.5", "18.5-25", "25-30", "≥30"), right=False)
GROUPS = (SEX_GROUPS, AGE_GROUPS, BMI, QUALITY)

SPEC = DatasetSpec(
    name="phantom_echo",
    title="Echo phantom",
    version="1.0.0",
    modality="echo",
    media="video",
    licence="Apache-2.0",
    access="",
    redistributable=True,
    generated=True,
    demo=("ef",),
    columns={
        "key_frame": "int64",
        "fps": "float64",
        "sex": "string",
        "age": "float64",
        "bmi": "float64",
        "image_quality": "string",
        "ivsd": "float64",
        "lvidd": "float64",
        "lvpwd": "float64",
        "lv_seg": "float64",
        "landmarks": "float64",
    },
    tasks=(
        Task(
            "phantom_echo/ef",
            "regression",
            "ef",
            ("mae",),
            unit="%",
            label_range=(0, 100),
            unit_column="patient_id",
            where={"view": ("A2C", "A4C")},
            groups=GROUPS,
            prompt_grid=PromptGrid(0, 100, 1),
            description="ejection fraction of a patient: mean over the apical two- and four-chamber recordings",
        ),
        Task(
            "phantom_echo/view",
            "multiclass",
            "view",
            ("f1_macro",),
            VIEWS,
            groups=(QUALITY,),
            description="echo view of each recording",
        ),
    ),
    dense_tasks=(
        Task(
            "phantom_echo/lv_seg",
            "segmentation",
            "lv_seg",
            ("dice", "hausdorff95"),
            structures=(CAVITY, MYOCARDIUM),
            unit_column="patient_id",
            groups=(SEX_GROUPS, AGE_GROUPS),
            description="cavity and muscle of the left ventricle in the apical views at end-diastole and end-systole",
        ),
        Task(
            "phantom_echo/landmarks",
            "landmarks",
            "landmarks",
            ("landmark_error",),
            structures=POINTS,
            unit="mm",
            description="ends of the calipers of septum, diameter and posterior wall at end-diastole",
        ),
    ),
)


@cache
def records() -> dict[str, EchoRecord]:
    """Return a mapping from id to recording."""
    return {record.id: record for record in echo_patients(PATIENTS, SEED)}


class PhantomEcho(CardioBuilder):
    """Generated recordings of 150 patients, one to three of different views each."""

    SPEC = SPEC

    @classmethod
    def rows(cls, raw: Path | None) -> Iterator[dict]:
        """Yield one row per recording."""
        for record in records().values():
            truth = record.truth
            yield {
                "id": record.id,
                "patient_id": record.patient_id,
                "split": cls.split_by_last_digit(record.patient_id),
                "media": record.id,
                "view": truth.view,
                "key_frame": 0,
                "fps": FPS,
                "sex": truth.sex,
                "age": truth.age,
                "bmi": truth.bmi,
                "image_quality": truth.image_quality,
                "ef": truth.ejection_fraction,
                "ivsd": truth.ivsd,
                "lvidd": truth.lvidd,
                "lvpwd": truth.lvpwd,
                "lv_seg": 2.0 if truth.view in ("A2C", "A4C") else None,
                "landmarks": 1.0 if truth.view == "PLAX" else None,
            }

    @classmethod
    def dense_labels(cls, raw: Path | None, task: Task, rows: pd.DataFrame) -> Iterator[DenseLabel]:
        """Yield the exact masks of both phases, or the exact ends of the calipers at end-diastole."""
        for row in rows.to_dict("records"):
            truth = records()[row["id"]].truth
            if task.rules.frame_label == "points":
                yield read_label(task, row, 0, partial(_points, truth), phase="ED")
                continue
            for phase, frame in (("ED", 0), ("ES", end_systole(truth, FPS))):
                yield read_label(task, row, frame, partial(_mask, truth, frame), phase=phase)

    @classmethod
    def media(cls, raw: Path | None, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the cine as motion JPEG in AVI, the format of the releases."""
        from cardiobench.data.media.write import avi

        name = f"{row['id']}.avi"
        truth = records()[row["id"]].truth
        return {
            "video": {
                "path": name,
                "bytes": cached_bytes(name, cls.generator(), lambda: avi(echo_clip(truth, fps=FPS), FPS)),
            }
        }


def _mask(truth: EchoTruth, frame: int) -> Reading:
    cavity, muscle = (echo_mask(truth, frames=1, first=frame, fps=FPS, part=part)[0] for part in ("cavity", "muscle"))
    return {"mask": (cavity + 2 * muscle).astype(np.uint8), "spacing": _spacing(truth)}


def _points(truth: EchoTruth) -> Reading:
    ends = calipers(truth, fps=FPS)
    points = np.concatenate([ends["septum"], ends["wall"]])  # The diameter is between the two walls.
    return {"points": points, "spacing": _spacing(truth)}


def _spacing(truth: EchoTruth) -> tuple[float, float]:
    side = 10 * cm_per_pixel(truth)
    return side, side
