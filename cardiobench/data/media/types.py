"""The two kinds of recordings in canonical form, the input of every model's preprocessing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
METADATA = ("age", "sex", "machine", "device", "hospital")
"""Columns with facts about the patient or the machine, not about the heart."""
Start = Literal["key_frame", "first", "uniform"]
Nifti = Literal["canonical", "paper"]
Facts = Mapping[str, str | float]
Box = tuple[int, int, int, int]
"""Box (left, top, right, bottom) in pixels; right and bottom are exclusive."""


@dataclass(frozen=True)
class Clip:
    """Frames of an echo recording; a still image is a clip of one frame.

    Attributes:
        frames: Uint8 RGB, (T, H, W, 3), in display orientation.
        indices: Index of each frame in the recording, (T,).
        n_frames: Number of frames of the whole recording, decoded or not.
        fps: Frames per second; None if unknown.
        facts: Age, sex and machine, if known (`METADATA`); only the metadata baseline reads them.
        kind: Kind of recording declared in the file, as in `dicom_regions`; empty if it declares none.
        regions: Boxes of the ultrasound regions declared in the file.
        content: Digest of the bytes from which the clip was read and of the facts beside them; empty if unknown.
    """

    frames: np.ndarray
    indices: np.ndarray
    n_frames: int
    fps: float | None = None
    facts: Facts = field(default_factory=dict)
    kind: str = ""
    regions: tuple[Box, ...] = ()
    content: str = ""


@dataclass(frozen=True)
class Ecg:
    """A 12-lead ECG.

    Attributes:
        signal: Signal in mV, float32 (samples, 12), leads in the order of `LEADS`; missing leads are zero.
        fs: Sampling rate in Hz.
        facts: Facts, as for a clip.
        leads: Available leads, in the order of `LEADS`.
        content: Digest, as for a clip.
        contradictions: What the file states about its samples and they contradict.
    """

    signal: np.ndarray
    fs: float
    facts: Facts = field(default_factory=dict)
    leads: tuple[str, ...] = LEADS
    content: str = ""
    contradictions: tuple[str, ...] = ()


@dataclass(frozen=True)
class FrameSampling:
    """Sampling of the frames of a clip for a model.

    `start="key_frame"`: `count` frames from the key frame on, every `stride`-th, fewer near the end (no padding);
    `start="first"`: the same from the first frame; `start="uniform"`: `count` evenly spaced frames, including first and
    last; `count=None`: all frames. `nifti="paper"`: each frame of a NIfTI volume is scaled separately, with x as the
    rows, as in arXiv:2510.00520; "canonical": scaled over the whole volume, in display orientation.
    """

    count: int | None = 16
    stride: int = 1
    start: Start = "key_frame"
    nifti: Nifti = "canonical"

    def __post_init__(self):
        if self.start not in ("key_frame", "first", "uniform"):
            raise ValueError(f"start='{self.start}': expected 'key_frame', 'first' or 'uniform'")
        if self.nifti not in ("canonical", "paper"):
            raise ValueError(f"nifti='{self.nifti}': expected 'canonical' or 'paper'")
        if (self.count is not None and self.count < 1) or self.stride < 1:
            raise ValueError(f"count={self.count}, stride={self.stride}: expected 1 or more")

    def indices(self, n_frames: int, key_frame: int = 0) -> np.ndarray:
        """Return the frame numbers (k,), 0 to `n_frames` - 1, ascending, each at most once."""
        if self.count is None:
            return np.arange(0, n_frames, self.stride)
        if self.start == "uniform":
            return np.unique(np.linspace(0, n_frames - 1, self.count).round().astype(int))
        first = min(max(key_frame, 0), n_frames - 1) if self.start == "key_frame" else 0
        return np.arange(first, n_frames, self.stride)[: self.count]


class CheckValue(NamedTuple):
    """What a check measured in a recording (`media.checks`).

    Attributes:
        value: Number to compare with the limits.
        detail: Where or what it is.
    """

    value: float
    detail: str = ""
