"""Synthetic twin of EchoNet-Dynamic: one A4C video per person, the list of files and the tracings."""

from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.data.media.write import avi
from cardiobench.data.phantom.echo import EchoTruth, echo_clip, end_systole
from cardiobench.data.phantom.echo_cohort import draw_fraction, draw_heart, draw_quality, draw_sex
from cardiobench.data.phantom.pictures import chords
from cardiobench.data.phantom.splits import round_robin
from cardiobench.data.twin_manifest import GENERATED

_ONE_FRAME, _SHUFFLED = 5, 8
"""Indices of the video with a single traced frame, and of the video with every second chord reversed."""
_ORDER = ("TEST", "TRAIN", "VAL", "TRAIN", "TRAIN", "TRAIN", "TRAIN", "TEST", "TRAIN", "TRAIN")


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` people to `EchoNet-Dynamic/`.

    As in the release, the list names files without extension and the tracings with it, and end-systole is the first of
    the two traced frames. One video has a single traced frame and another has chords with swapped ends, which also
    occur in the release.
    """
    root = out / "EchoNet-Dynamic"
    (root / "Videos").mkdir(parents=True, exist_ok=True)
    listed, traced = [], []
    for index in range(patients):
        name, truth, frames, fps = _recording(np.random.default_rng([seed, index]))
        clip = echo_clip(truth, frames=frames, fps=fps)
        (root / "Videos" / f"{name}.avi").write_bytes(avi(clip, fps, comment=GENERATED))
        listed.append((name, truth.ejection_fraction, truth.esv, truth.edv, 112, 112, fps, frames))
        for frame in (end_systole(truth, fps), 0)[: 1 if index == _ONE_FRAME else 2]:
            lines = chords(truth, frame, fps)
            if index == _SHUFFLED:
                lines[2::2] = lines[2::2][:, [2, 3, 0, 1]]
            traced += [(f"{name}.avi", *line, frame) for line in lines]
    columns = ["FileName", "EF", "ESV", "EDV", "FrameHeight", "FrameWidth", "FPS", "NumberOfFrames"]
    table = pd.DataFrame(listed, columns=columns)
    table["Split"] = round_robin(list(table["EF"] < 50), _ORDER)
    table.to_csv(root / "FileList.csv", index=False)
    tracings = pd.DataFrame(traced, columns=["FileName", "X1", "Y1", "X2", "Y2", "Frame"])
    tracings.to_csv(root / "VolumeTracings.csv", index=False, float_format="%.6f")


def _recording(rng: np.random.Generator) -> tuple[str, EchoTruth, int, float]:
    name = f"0X{rng.integers(2**63):016X}"
    heart = draw_heart(rng, draw_fraction(rng), draw_sex(rng))
    quality = draw_quality(rng)
    rate = float(rng.uniform(58, 100))
    truth = EchoTruth(**heart, view="A4C", heart_rate=rate, image_quality=quality, seed=int(rng.integers(2**31)))
    return name, truth, int(rng.integers(52, 76)), 50.0
