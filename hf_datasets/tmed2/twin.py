"""Synthetic twin of TMED-2: images of several views, labelled by view and severity of aortic stenosis."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from cardiobench.core.errors import MissingExtra
from cardiobench.data.phantom.echo import EchoTruth, echo_clip
from cardiobench.data.phantom.echo_cohort import draw_heart, draw_quality
from cardiobench.data.phantom.heart import View
from cardiobench.data.phantom.splits import round_robin
from cardiobench.data.twin_manifest import GENERATED

FIRST_PATIENT = 7_001
"""First patient number; those of the release end at 6184."""

# Severity -> calcium of the aortic valve (0 to 1), and additional wall thickness, cm.
_SEVERITY = {
    "no_AS": (0.0, 0.0),
    "mild_AS": (0.35, 0.05),
    "mildtomod_AS": (0.5, 0.1),
    "moderate_AS": (0.7, 0.18),
    "severe_AS": (0.95, 0.28),
}
_VIEWS = ("PLAX", "PLAX", "PSAX", "A4CorA2CorOther", "PLAX", "A2C", "A4C", "A4CorA2CorOther", "PSAX")
_BOTH, _VIEW_ONLY = "view_and_diagnosis_labeled_set/labeled", "view_labeled_set/labeled"
_ORDER = ("test", "train", "val", "train", "train")


@dataclass(frozen=True)
class _Study:
    name: str
    diagnosis: str
    split: int
    views: tuple[str, ...]
    folder: str


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` patients, one in ten with two studies, with six to nine images per study.

    Stenosis appears as thick, bright leaflets of the aortic valve that hardly open (PLAX, PSAX) and as thicker walls
    (all views). Patients are numbered from `FIRST_PATIENT`. One additional patient in six has only view labels
    (`Not_Provided`). The three folds of each development set assign patients differently; the smaller sets (DEV165,
    DEV56) mark other training patients as `Not_Used`.
    """
    try:
        from PIL import Image
        from PIL.PngImagePlugin import PngInfo
    except ImportError as error:
        raise MissingExtra("writing PNG files", "models", "pillow") from error

    comment = PngInfo()
    comment.add_text("Comment", GENERATED)
    rows = []
    for study in _studies(patients, seed):
        folder = out / "approved_users_only" / study.folder
        folder.mkdir(parents=True, exist_ok=True)
        for number, picture in enumerate(_pictures(study, seed)):
            key = f"{study.name}_{number}.png"
            Image.fromarray(picture).save(folder / key, pnginfo=comment)
            rows.append((key, study.views[number], study.diagnosis, study.folder, study.split))
    table = pd.DataFrame(rows, columns=["query_key", "view_label", "diagnosis_label", "SourceFolder", "split"])
    table.drop(columns="split").to_csv(out / "approved_users_only" / "labels_per_image.csv", index=False)
    for name, share in (("DEV479", 1), ("DEV165", 3), ("DEV56", 9)):
        (out / "approved_users_only" / name).mkdir(exist_ok=True)
        for fold in range(3):
            path = out / "approved_users_only" / name / f"TMED2_fold{fold}_labeledpart.csv"
            _fold(table, fold, share).to_csv(path, index=False)


def _studies(patients: int, seed: int) -> list[_Study]:
    rng = np.random.default_rng([seed, 0])
    # Two patients in five have no stenosis; the others are spread over the severities.
    sick = list(_SEVERITY)[1:]
    diagnoses = [sick[rng.integers(len(sick))] if number % 5 > 1 else "no_AS" for number in range(patients)]
    positions = round_robin([diagnosis == "no_AS" for diagnosis in diagnoses], range(10_000))
    studies = []
    for number, (diagnosis, position) in enumerate(zip(diagnoses, positions, strict=True)):
        for visit in (1, 2) if number % 10 == 5 else (1,):
            views = _VIEWS[: rng.integers(6, len(_VIEWS) + 1)]
            studies.append(_Study(f"{FIRST_PATIENT + number}s{visit}", diagnosis, position, views, _BOTH))
    for number in range(patients, patients + patients // 6):
        studies.append(_Study(f"{FIRST_PATIENT + number}s1", "Not_Provided", number, _VIEWS[2:6], _VIEW_ONLY))
    return studies


def _pictures(study: _Study, seed: int) -> list[np.ndarray]:
    """Return one grey image of 112 x 112 pixels for each view of the study."""
    rng = np.random.default_rng([seed, *map(int, study.name.split("s"))])
    calcium, thicker = _SEVERITY.get(study.diagnosis, (0.0, 0.0))
    heart = draw_heart(rng, float(np.clip(rng.normal(60, 8), 25, 75)), "F", thicker=thicker)
    calcium = float(np.clip(calcium + rng.normal(0.0, 0.06), 0.0, 1.0))
    pictures = []
    for view in study.views:
        plane = cast(View, str(rng.choice(("A2C", "A3C", "A4C"))) if view == "A4CorA2CorOther" else view)
        quality = draw_quality(rng, poor=0.1)
        truth = EchoTruth(
            **heart, view=plane, valve_calcium=calcium, aortic_level=plane == "PSAX", seed=int(rng.integers(2**31)),
            heart_rate=float(rng.uniform(55, 95)), image_quality=quality,
        )  # fmt: skip
        pictures.append(echo_clip(truth, frames=1, first=int(rng.integers(0, 25)))[0, :, :, 0])
    return pictures


def _fold(table: pd.DataFrame, fold: int, share: int) -> pd.DataFrame:
    """Return the table of a fold, in which one of `share` training patients is used."""
    used = np.array(_ORDER)[(table["split"] + fold) % len(_ORDER)]
    used[(used == "train") & (table["split"] // len(_ORDER) % share > 0)] = "Not_Used"
    part = table.drop(columns="split")
    part.insert(3, "view_classifier_split", used)
    part.insert(4, "diagnosis_classifier_split", np.where(table["diagnosis_label"] == "Not_Provided", "Not_Used", used))
    return part
