"""Synthetic twin of EchoNet-Pediatric: A4C and PSAX videos of children, several per visit."""

from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.data.media.write import avi
from cardiobench.data.phantom.echo import EchoTruth, echo_clip, end_systole
from cardiobench.data.phantom.echo_cohort import draw_fraction, draw_heart, draw_sex
from cardiobench.data.phantom.heart import View
from cardiobench.data.phantom.pictures import chords
from cardiobench.data.twin_manifest import GENERATED

_FPS, _FRAMES = 30.0, 32
_VIEWS: tuple[View, ...] = ("A4C", "PSAX")


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` children to `A4C/` and `PSAX/`.

    A child has one or two visits, with one or two videos per view and the same ejection fraction per visit. The first
    part of a file name identifies the child. As in the release, some weights and heights are missing and some tracings
    are `No Systolic`. Children are assigned to the ten folds in turn.
    """
    listed: dict[str, list[tuple]] = {"A4C": [], "PSAX": []}
    traced: dict[str, list[tuple]] = {"A4C": [], "PSAX": []}
    for view in listed:
        (out / view / "Videos").mkdir(parents=True, exist_ok=True)
    for index in range(patients):
        for view, name, truth, age, weight, height in _videos(index, np.random.default_rng([seed, index])):
            clip = echo_clip(truth, frames=_FRAMES, fps=_FPS)
            (out / view / "Videos" / name).write_bytes(avi(clip, _FPS, comment=GENERATED))
            listed[view].append((name, truth.ejection_fraction, truth.sex, age, weight, height, index % 10))
            traced[view] += _tracing(name, truth, systole=index % 15 != 7)
    for view, rows in listed.items():
        table = pd.DataFrame(rows, columns=["FileName", "EF", "Sex", "Age", "Weight", "Height", "Split"])
        table.to_csv(out / view / "FileList.csv", index=False)
        tracings = pd.DataFrame(traced[view], columns=["FileName", "X", "Y", "Frame"])
        tracings.to_csv(out / view / "VolumeTracings.csv", index=False, float_format="%.3f")


def _videos(index: int, rng: np.random.Generator) -> list[tuple[View, str, EchoTruth, int, float | None, float | None]]:
    sex, age = draw_sex(rng), int(rng.integers(0, 19))
    height = 52.0 + 28.0 * np.sqrt(age) if age < 2 else min(85.0 + 6.2 * (age - 2), 172.0)
    height = float(np.round(height * rng.normal(1.0, 0.04), 1))
    weight = float(np.round((height / 100) ** 2 * rng.uniform(13.5, 27.0), 1))
    written = (None, None) if index % 11 == 5 else (weight, height)
    patient = f"CR{rng.integers(2**28):07x}{index % 16:x}"
    videos: list[tuple[View, str, EchoTruth, int, float | None, float | None]] = []
    for _ in range(1 + (rng.random() < 0.35)):
        visit = f"CR{rng.integers(2**32):08x}"
        fraction = float(np.round(draw_fraction(rng), 2))
        heart = draw_heart(rng, fraction, sex, scale=height / 172.0)
        rate = float(np.round(rng.normal(125 - 2.8 * age, 8)))
        for view in _VIEWS:
            for _ in range(1 + (rng.random() < 0.3)):
                name = f"{patient}-{visit}-{len(videos):06d}.avi"
                truth = EchoTruth(
                    **heart, view=view, heart_rate=rate, sex=sex, age=float(age), seed=int(rng.integers(2**31))
                )
                videos.append((view, name, truth, age, *written))
    return videos


def _tracing(name: str, truth: EchoTruth, *, systole: bool) -> list[tuple]:
    """Return the outline of the cavity in both phases, one point per row.

    An untraced phase has one row without a point.
    """
    rows: list[tuple] = []
    for frame, known in ((0, True), (end_systole(truth, _FPS), systole)):
        if not known:
            rows.append((name, None, None, "No Systolic"))
            continue
        lines = chords(truth, frame, _FPS)[1:]
        outline = np.concatenate([lines[:, :2], lines[::-1, 2:]])
        rows += [(name, x, y, frame) for x, y in outline]
    return rows
