"""Synthetic twin of EchoNet-LVH: PLAX videos in four batches and the list of measurements."""

from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.data.media.write import avi
from cardiobench.data.phantom.echo import EchoTruth, calipers, echo_clip, end_systole
from cardiobench.data.phantom.echo_cohort import draw_fraction, draw_heart, draw_quality, draw_sex
from cardiobench.data.phantom.heart import beating
from cardiobench.data.phantom.pictures import fps_of_whole_beats, letterbox
from cardiobench.data.phantom.splits import round_robin
from cardiobench.data.twin_manifest import GENERATED

_SIZE, _HEIGHT, _WIDTH = 160, 160, 208
_CONTRADICTING = 5
"""Index of the video with a caliper drawn far longer than its stated length."""
_ORDER = ("test", "train", "val", "train", "train", "train", "train", "train", "train", "train")


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` videos to `Batch1/` to `Batch4/`.

    Every video is measured in diastole (IVSd, LVIDd, LVPWd) at the start of its second beat, and every third one also
    in systole. Values are in cm, rounded to a tenth of a millimetre; points are in pixels of the whole image. One
    posterior wall is drawn twice as long as stated.
    """
    rows = []
    splits = round_robin([0] * patients, _ORDER)
    for batch in range(4):
        (out / f"Batch{batch + 1}").mkdir(parents=True, exist_ok=True)
    for index, split in enumerate(splits):
        rng = np.random.default_rng([seed, index])
        name, truth = f"0X{rng.integers(2**63):016X}", _patient(rng)
        fps = fps_of_whole_beats(truth.heart_rate, near=30.0)
        beat = round(60.0 / truth.heart_rate * fps)
        clip = letterbox(echo_clip(truth, frames=beat + 16, size=_SIZE, fps=fps), _HEIGHT, _WIDTH)
        (out / f"Batch{index % 4 + 1}" / f"{name}.avi").write_bytes(avi(clip, fps, comment=GENERATED))
        phases = [("d", beat)] + ([("s", end_systole(truth, fps))] if index % 3 == 0 else [])
        for phase, frame in phases:
            for calc, value, ends in _measured(truth, phase, frame, fps):
                (x1, y1), (x2, y2) = ends
                if index == _CONTRADICTING and calc == "LVPWd":
                    x2, y2 = 2 * x2 - x1, 2 * y2 - y1
                rows.append((name, calc, value, frame, x1, x2, y1, y2, len(clip), fps, _WIDTH, _HEIGHT, split))
    columns = [
        "HashedFileName", "Calc", "CalcValue", "Frame", "X1", "X2", "Y1", "Y2", "Frames", "FPS", "Width", "Height", "split",
    ]  # fmt: skip
    pd.DataFrame(rows, columns=columns).to_csv(out / "MeasurementsList.csv")


def _patient(rng: np.random.Generator) -> EchoTruth:
    thicker = float(rng.choice((0.0, 0.3), p=(0.6, 0.4)))
    heart = draw_heart(rng, draw_fraction(rng), draw_sex(rng), thicker=thicker)
    quality = draw_quality(rng)
    rate = float(rng.uniform(58, 95))
    return EchoTruth(**heart, view="PLAX", heart_rate=rate, image_quality=quality, seed=int(rng.integers(2**31)))


def _measured(truth: EchoTruth, phase: str, frame: int, fps: float) -> list[tuple[str, float, np.ndarray]]:
    heart = beating(truth, 1, fps, frame)
    values = {"IVS": heart.septum[0], "LVID": 2 * heart.b[0], "LVPW": heart.wall[0]}
    points = calipers(truth, frame=frame, size=_SIZE, fps=fps)
    shift = np.array([(_WIDTH - _SIZE) // 2, (_HEIGHT - _SIZE) // 2])
    ends = {"IVS": points["septum"], "LVID": points["diameter"], "LVPW": points["wall"]}
    return [
        (calc + phase, float(np.round(value, 2)), np.round(ends[calc] + shift).astype(int))
        for calc, value in values.items()
    ]
