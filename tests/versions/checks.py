"""Sketch of the remarks on faulty recordings."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from cardiobench.data.media.checks import CHECKS, remarks_on
from cardiobench.data.media.types import Clip
from tests.versions.case import plain
from tests.versions.models import ecg


def remarked(folder: Path) -> list:
    """Return the values of all remarks: of an ECG with exchanged leads, clipped and cut short, and of a frozen clip."""
    wrong = ecg()
    signal = np.clip(wrong.signal[:, [1, 0, *range(2, 12)]], -0.5, 0.5)
    signal[len(signal) // 2 :] = signal[len(signal) // 2]
    frames = np.tile(np.arange(96, dtype=np.uint8)[:, None] * 2, (10, 1, 96))[..., None].repeat(3, axis=-1)
    clip = Clip(frames, np.arange(10), 10, fps=1.0)
    found = [*remarks_on(replace(wrong, signal=signal), "ecg"), *remarks_on(clip, "video")]
    order = [check.name for check in CHECKS]
    return [np.array([[order.index(one.check), one.value] for one in found])]


CASES = {"checks": plain(remarked, "checks")}
