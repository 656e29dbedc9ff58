"""Checks of a decoded recording: signs that it is not what its file says. A remark never removes a recording.

`CHECKS` is the table of all checks. A measure returns one number, which leads to a remark if it is outside the limits
of its check. `remarks_on` applies them. Limits were chosen so that fewer than 1 % of real recordings are remarked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from cardiobench.data.media import clip_signs, ecg_signs
from cardiobench.data.media.clip_signs import FROZEN, ClipSigns
from cardiobench.data.media.ecg_signs import FLAT, GAP, LEAD_LIMIT, EcgSigns
from cardiobench.data.media.types import CheckValue, Clip, Ecg

COMPONENT = "checks"
VERSION = 2

Media = Literal["ecg", "video", "image"]


@dataclass(frozen=True)
class Remark:
    """A sign that a recording is not what its file says.

    Attributes:
        check: Name of the check.
        value: What the check measured.
        detail: Sentence without the value.
        severity: Value relative to the limit, 1 or more; the larger, the worse.
    """

    check: str
    value: float
    detail: str
    severity: float


@dataclass(frozen=True)
class RecordingCheck:
    """A row of the table of checks.

    Attributes:
        name: Name in tables, files and messages.
        media: Kinds of recording to which it applies.
        quantity: What is measured, with its unit.
        low: Smallest value without a remark.
        high: Largest value without a remark.
        reason: Reason or source of the limit.
        measure: Function from `EcgSigns` or `ClipSigns` to the value; None if it cannot be measured.
        thorough: Whether it takes milliseconds, so that only `audit`, `adopt` and `doctor` apply it.
    """

    name: str
    media: tuple[Media, ...]
    quantity: str
    low: float | None
    high: float | None
    reason: str
    measure: Callable[..., CheckValue | None]
    thorough: bool = False

    def remark(self, signs: "EcgSigns | ClipSigns") -> Remark | None:
        """Return the remark on a recording; None if its value is within the limits or cannot be measured."""
        found = self.measure(signs)
        if found is None:
            return None
        if self.high is not None and found.value > self.high:
            severity = found.value / self.high if self.high else np.inf
        elif self.low is not None and found.value < self.low:
            severity = self.low / found.value if found.value else np.inf
        else:
            return None
        return Remark(self.name, float(found.value), found.detail, float(severity))


def remarks_on(recording: Clip | Ecg, media: str, *, thorough: bool = True) -> tuple[Remark, ...]:
    """Return the remarks on a decoded recording, in the order of `CHECKS`.

    Args:
        recording: The recording as read, before any preprocessing.
        media: Kind of the dataset's recordings: "ecg", "video" or "image".
        thorough: Whether to also apply the checks that take milliseconds.
    """
    signs = EcgSigns(recording) if isinstance(recording, Ecg) else ClipSigns(recording)
    found = [check.remark(signs) for check in _checks_of(media, thorough)]
    return tuple(remark for remark in found if remark is not None)


@cache
def _checks_of(media: str, thorough: bool) -> tuple[RecordingCheck, ...]:
    """Return the checks of a kind of recording in the order of `CHECKS`."""
    return tuple(check for check in CHECKS if media in check.media and (thorough or not check.thorough))


# ---- The table --------------------------------------------------------------------------------------------------------

AMPLITUDES = (0.05, 20.0)
"""Plausible amplitudes of an ECG in mV, less than a factor of 1000 apart, so that only one unit fits."""

CHECKS: tuple[RecordingCheck, ...] = (
    RecordingCheck("flat lead", ("ecg",), "smallest peak-to-peak amplitude of a lead, mV", FLAT, None, "at least 0.2 mV in 590 real ECGs", ecg_signs.flat),
    RecordingCheck("clipped", ("ecg",), "samples at the extreme of a lead, relative to those in the next 5 % of its range", None, 0.5, "at most 0.05 in 590 real ECGs; waves pass through the range next to their peak", ecg_signs.clipped),
    RecordingCheck("gap", ("ecg",), "longest constant stretch of a lead, s", None, GAP, "at most 0.33 s in 590 real ECGs, between beats", ecg_signs.gap),
    RecordingCheck("large amplitude", ("ecg",), "largest absolute value, mV", None, AMPLITUDES[1], "no heart reaches it; microvolts read as millivolts exceed it", ecg_signs.large),
    RecordingCheck("small amplitude", ("ecg",), "median half range of the leads, mV", AMPLITUDES[0], None, "at least 0.28 mV in 590 real ECGs; volts read as millivolts are below it", ecg_signs.small),
    RecordingCheck("shorter than declared", ("ecg",), "time at both ends during which no lead changes, s", None, GAP, "at most 0.11 s in 590 real ECGs, at the end of PTB-XL", ecg_signs.short),
    RecordingCheck("limb leads contradict each other", ("ecg",), "RMS deviation from Einthoven and Goldberger relative to the limb leads", None, LEAD_LIMIT, "at most 0.06 in 590 real ECGs, and at least 0.14 with two leads exchanged", ecg_signs.contradiction),
    RecordingCheck("contradicts its header", ("ecg",), "number, first values and checksums of samples that differ from those in a WFDB header", None, 0.0, "none in 475 real records", ecg_signs.header),
    RecordingCheck("sampling rate", ("ecg",), "log2 of heart rate over QRS width, relative to the typical ratio", -1.55, 1.55, "between -1.49 and 1.53 in 590 real ECGs; twice the rate adds 2", ecg_signs.rate, thorough=True),
    RecordingCheck("noise only", ("ecg",), "median correlation of the beats with their average", 0.5, None, "at least 0.89 in real ECGs and at most 0.22 in noise", ecg_signs.noise, thorough=True),
    RecordingCheck("black", ("video", "image"), "fraction of black frames", None, 0.0, "a frame of an ultrasound shows tissue", clip_signs.black),
    RecordingCheck("frozen", ("video",), "largest mean difference to the first frame, grey levels", FROZEN, None, "the heart moves", clip_signs.frozen),
    RecordingCheck("repeated frames", ("video",), "fraction of frames that equal the one before", None, 0.1, "a conversion of the frame rate repeats frames", clip_signs.repeated),
    RecordingCheck("frame rate", ("video",), "frames per second", 5.0, 400.0, "frame rates of cardiac ultrasound", clip_signs.frame_rate),
    RecordingCheck("still", ("video",), "number of frames", 2, None, "a clip was expected", clip_signs.still),
    RecordingCheck("frame size", ("video", "image"), "smaller side, pixels", 16, None, "no structure of the heart is visible", clip_signs.small_frame),
    RecordingCheck("text", ("video", "image"), "edges of bright pixels that do not move or are outside the ultrasound, % of pixels", None, 0.05, "patients and measurements may be readable", clip_signs.text, thorough=True),
    RecordingCheck("Doppler or M-mode", ("video", "image"), "1 if the header declares colour flow, a spectrum or M-mode", None, 0.0, "B-mode was expected", clip_signs.doppler),
)  # fmt: skip


def check_table() -> str:
    """Return the table of docs/checks.md as Markdown."""
    kinds = {"ecg": "ECG", "video": "clip", "image": "image"}
    lines = ["| check | of | measured | remarked | reason | where |", "|---|---|---|---|---|---|"]
    for check in CHECKS:
        limits = [
            f"below {check.low:g}" if check.low is not None else "",
            f"above {check.high:g}" if check.high is not None else "",
        ]
        where = "audit, adopt, doctor" if check.thorough else "every reading"
        of = ", ".join(kinds[kind] for kind in check.media)
        lines.append(
            f"| {check.name} | {of} | {check.quantity} | {' or '.join(filter(None, limits))} | {check.reason} | {where} |"
        )
    return "\n".join(lines) + "\n"


# ---- Recordings among others -------------------------------------------------------------------------------------------

FACTOR, FEWEST_OTHERS = 8.0, 10
"""Largest ratio to the median of the dataset, and recordings needed to compute one."""


def sizes(recording: Clip | Ecg) -> dict[str, float]:
    """Return the properties of a recording that are compared with those of the others of its dataset."""
    if isinstance(recording, Ecg):
        return {"sampling rate": recording.fs, "duration": len(recording.signal) / recording.fs}
    height, width = recording.frames.shape[1:3]
    return {"number of frames": recording.n_frames, "frame size": min(height, width)}


def stand_out(properties: Mapping[str, Sequence[float]]) -> dict[int, tuple[Remark, ...]]:
    """Return the recordings of which a property differs from the median by more than `FACTOR`, by position.

    Args:
        properties: Mapping from property, as in `sizes`, to its value in each recording.
    """
    remarks: dict[int, tuple[Remark, ...]] = {}
    for name, column in properties.items():
        values = np.array(column, dtype=np.float64)
        if len(values) < FEWEST_OTHERS:
            continue
        middle = float(np.median(values))
        ratio = np.maximum(values / middle, middle / values)
        for place in np.flatnonzero(ratio > FACTOR).tolist():
            detail = f"{values[place]:.4g}; the median of all recordings is {middle:.4g}"
            remark = Remark(f"unusual {name}", float(values[place]), detail, float(ratio[place] / FACTOR))
            remarks[place] = (*remarks.get(place, ()), remark)
    return remarks
