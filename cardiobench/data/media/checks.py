"""Checks of a decoded recording: signs that it is not what its file says. A remark never removes a recording.

`CHECKS` is the table of all checks. A measure returns one number, which leads to a remark if it is outside the limits
of its check. `remarks_on` applies them. Limits were chosen so that fewer than 1 % of real recordings are remarked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Literal, NamedTuple

import numpy as np

from cardiobench.data.media import ecg_beats
from cardiobench.data.media.dicom_regions import COLOUR, SPECTRAL
from cardiobench.data.media.lead_order import deviation, fitting_order, limb_covariance
from cardiobench.data.media.overlays import STATIC
from cardiobench.data.media.resample import resample
from cardiobench.data.media.types import LEADS, Clip, Ecg

COMPONENT = "checks"
VERSION = 1

Media = Literal["ecg", "video", "image"]
PIXELS = 48
"""Number of rows and columns of a frame that are compared, at least."""
DARK, BRIGHT = 24, 96
"""Grey levels of a pixel that counts as dark, at most, and as bright, at least."""
CONTRAST = 64
"""Difference in grey levels between a character and its background, at least."""
ROWS = 128
"""Number of rows of a frame that are searched for text, at least."""
LIT = 0.005
"""Fraction of pixels that are not dark in a frame with an image."""
SAME = 0.05
"""Mean difference in grey levels below which two frames show the same image."""
FEWEST_FRAMES = 8
"""Frames needed to tell text from tissue, which moves."""
BLOCK = 32
"""Samples in a row of `EcgSigns.blocks`."""
GAP = 0.5
"""Longest constant stretch of a recorded lead, in seconds."""
TOP = 0.05
"""Part of the range of a lead next to its extreme value, which a wave passes through and a limit cuts off."""
FEWEST_BEATS, FEWEST_SECONDS = 3, 2.0
TYPICAL_RATE, TYPICAL_QRS = 70.0, 60.0
"""Heart rate per minute and width of the steep part of the QRS complex in ms, about the medians of PTB-XL."""


class Measured(NamedTuple):
    """What a check measured.

    Attributes:
        value: Number to compare with the limits.
        detail: Where or what it is.
    """

    value: float
    detail: str = ""


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
class Check:
    """A row of the table of checks.

    Attributes:
        name: Name in tables, files and messages.
        media: Kinds of recording to which it applies.
        quantity: What is measured, with its unit.
        low: Smallest value without a remark.
        high: Largest value without a remark.
        reason: Reason or source of the limit.
        measure: Function from `EcgSigns` or `ClipSigns` to the value; None if it cannot be measured.
        thorough: Whether it takes longer than a tenth of reading, so that only `audit`, `adopt` and `doctor` apply it.
    """

    name: str
    media: tuple[Media, ...]
    quantity: str
    low: float | None
    high: float | None
    reason: str
    measure: Callable[..., Measured | None]
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
        media: Kind of the dataset's recordings: ("ecg",), "video" or "image".
        thorough: Whether to also apply the checks that take longer than a tenth of reading.
    """
    signs = EcgSigns(recording) if isinstance(recording, Ecg) else ClipSigns(recording)
    chosen = (check for check in CHECKS if media in check.media and (thorough or not check.thorough))
    return tuple(remark for check in chosen if (remark := check.remark(signs)) is not None)


# ---- ECG --------------------------------------------------------------------------------------------------------------


class EcgSigns:
    """Properties of an ECG that several checks use, each computed once.

    The checks of every reading take a few microseconds each, so the twelve ranges are plain numbers.

    Attributes:
        ecg: The recording.
        signal: Its signal, (samples, 12).
        blocks: The same samples in rows of 32, (samples // 32, 384), which NumPy compares several times faster.
        recorded: Positions of its leads.
    """

    def __init__(self, ecg: Ecg):
        self.ecg, self.signal = ecg, np.ascontiguousarray(ecg.signal)
        self.blocks = self.signal[: len(self.signal) // BLOCK * BLOCK].reshape(-1, BLOCK * len(LEADS))
        self.recorded = [place for place, lead in enumerate(LEADS) if lead in ecg.leads]

    def over_samples(self, ufunc: np.ufunc) -> np.ndarray:
        """Reduce the signal over its samples, (12,)."""
        rest = self.signal[len(self.blocks) * BLOCK :]
        if not len(self.blocks):
            return ufunc.reduce(rest, axis=0)
        reduced = ufunc.reduce(ufunc.reduce(self.blocks, axis=0).reshape(BLOCK, -1), axis=0)
        return ufunc(reduced, ufunc.reduce(rest, axis=0)) if len(rest) else reduced

    @cached_property
    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest value of each lead, (12,) each."""
        return self.over_samples(np.minimum), self.over_samples(np.maximum)

    @cached_property
    def range(self) -> list[float]:
        """Difference of largest and smallest value of each lead in mV."""
        low, high = self.extremes
        return (high - low).tolist()

    @cached_property
    def varying(self) -> list[int]:
        """Positions of the recorded leads that are not constant throughout."""
        return [lead for lead in self.recorded if self.range[lead] > 0]

    @cached_property
    def still(self) -> list[tuple[int, int, int]]:
        """Stretches (lead, first sample, last sample) of at least `GAP` in which a varying lead is constant."""
        length = max(int(GAP * self.ecg.fs), 5)
        some = self.signal[:: length // 5]
        same = some[1:] == some[:-1]
        if len(same) < 4 or not (long := same[:-3] & same[1:-2] & same[2:-1] & same[3:]).any():
            return []
        return [
            (int(lead), start, end)
            for lead in np.flatnonzero(long.any(axis=0))
            if lead in self.varying
            for start, end in _runs(np.diff(self.signal[:, lead]) == 0)
            if end - start >= length
        ]

    @cached_property
    def silent_ends(self) -> tuple[int, int]:
        """Number of samples at the start and at the end during which every varying lead is constant."""
        last = len(self.signal) - 1
        starts = {lead: end for lead, start, end in self.still if start == 0}
        ends = {lead: last - start for lead, start, end in self.still if end == last}
        every = len(self.varying)
        return (
            min(starts.values()) if every and len(starts) == every else 0,
            min(ends.values()) if every and len(ends) == every else 0,
        )

    @cached_property
    def beats(self) -> ecg_beats.Beats | None:
        """Beats at 250 Hz; None in a recording too short for several."""
        if len(self.signal) < FEWEST_SECONDS * self.ecg.fs:
            return None
        return ecg_beats.find_beats(ecg_beats.clean(resample(self.signal, self.ecg.fs, ecg_beats.FS)))


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """Return start and end of each run of true values, (n,) bool."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return [(int(start), int(end)) for start, end in zip(edges[::2], edges[1::2], strict=True)]


def _flat(signs: EcgSigns) -> Measured | None:
    smallest = min(signs.range[lead] for lead in signs.recorded)
    flat = [LEADS[lead] for lead in signs.recorded if signs.range[lead] < FLAT] if smallest < FLAT else []
    return Measured(smallest, ", ".join(flat))


def _clipped(signs: EcgSigns) -> Measured | None:
    """Compare the samples at an extreme value, in several runs of two or more, with those just short of it."""
    worst = Measured(0.0)
    for sign, limit in zip((-1, 1), signs.extremes, strict=True):
        # Without clipping, about one sample of each lead is at its extreme.
        if np.count_nonzero(signs.blocks == np.tile(limit, BLOCK)) < len(LEADS) + 6:
            continue
        for lead in signs.varying:
            values = signs.signal[:, lead]
            at = values == limit[lead]
            runs = [end - start for start, end in _runs(at) if end - start >= 2]
            if len(runs) < 3:
                continue
            below = sign * values >= sign * limit[lead] - TOP * signs.range[lead]
            value = sum(runs) / (1 + np.count_nonzero(below & ~at))
            if value > worst.value:
                worst = Measured(value, f"{LEADS[lead]} at {limit[lead]:.3g} mV, {len(runs)} times")
    return worst


def _gap(signs: EcgSigns) -> Measured | None:
    start, end = signs.silent_ends
    last = len(signs.signal) - 1
    inside = [
        (stop - first, lead, first, stop)
        for lead, first, stop in signs.still
        if not ((start and first == 0) or (end and stop == last))
    ]
    if not inside:
        return Measured(0.0)
    length, _, first, stop = max(inside)
    names = [LEADS[lead] for _, lead, begin, finish in inside if begin < stop and finish > first]
    fs = signs.ecg.fs
    return Measured(
        length / fs, f"{', '.join(dict.fromkeys(names))} constant from {first / fs:.3g} to {stop / fs:.3g} s"
    )


def _short(signs: EcgSigns) -> Measured | None:
    start, end = signs.silent_ends
    fs, total = signs.ecg.fs, len(signs.signal)
    return Measured((start + end) / fs, f"a signal of {(total - start - end) / fs:.3g} of {total / fs:.3g} s")


def _large(signs: EcgSigns) -> Measured | None:
    low, high = signs.extremes
    largest = np.maximum(-low, high)
    return Measured(float(largest.max()), f"in {LEADS[int(largest.argmax())]}; the unit or the gain may be wrong")


def amplitude(ecg: Ecg) -> float:
    """Return the median half range in mV of the leads that are not constant; 0 without one."""
    return _amplitude(EcgSigns(ecg))


def _amplitude(signs: EcgSigns) -> float:
    ranges = [signs.range[lead] for lead in signs.varying]
    return median(ranges) / 2 if ranges else 0.0


def _small(signs: EcgSigns) -> Measured | None:
    return Measured(_amplitude(signs), "the unit or the gain may be wrong") if signs.varying else None


def _contradiction(signs: EcgSigns) -> Measured | None:
    recorded = [lead in signs.varying for lead in range(6)]
    covariance = limb_covariance(signs.signal)
    worst = deviation(covariance, recorded)
    if worst is None or worst <= LEAD_LIMIT:
        return Measured(worst) if worst is not None else None
    order = fitting_order(covariance, LEAD_LIMIT) if all(recorded) else ""
    return Measured(worst, order or "no exchange or inversion of limb leads explains it")


def _rate(signs: EcgSigns) -> Measured | None:
    beats = signs.beats
    if beats is None or len(beats.peaks) < FEWEST_BEATS or not len(beats.each):
        return None
    rate = 60 * ecg_beats.FS / float(np.median(np.diff(beats.peaks)))
    first, last = ecg_beats.qrs_limits(ecg_beats.activity(beats.average), 0.3)
    width = max(1000 * (last - first) / ecg_beats.FS, 8.0)
    # A wrong sampling rate multiplies the one and divides the other by the same factor.
    value = np.log2(rate / TYPICAL_RATE) - np.log2(width / TYPICAL_QRS)
    return Measured(float(value), f"{rate:.0f} beats per minute with a QRS complex of {width:.0f} ms")


def _noise(signs: EcgSigns) -> Measured | None:
    beats = signs.beats
    if beats is None:
        return None
    if len(beats.each) < 2:
        return Measured(0.0, "no repeated beat") if len(signs.signal) >= 2 * FEWEST_SECONDS * signs.ecg.fs else None
    value = float(np.median(ecg_beats.likeness(beats.each, beats.average)))
    return Measured(value, "beats do not resemble their average")


# ---- Echo -------------------------------------------------------------------------------------------------------------


class ClipSigns:
    """Properties of a clip that several checks use, each computed once.

    Attributes:
        clip: The recording.
        some: Part of its pixels, (T, h, w, 3).
    """

    def __init__(self, clip: Clip):
        self.clip = clip
        height, width = clip.frames.shape[1:3]
        self.step = max(height // PIXELS, 1), max(width // PIXELS, 1)
        self.some = np.ascontiguousarray(clip.frames[:, :: self.step[0], :: self.step[1]])

    @cached_property
    def changes(self) -> np.ndarray:
        """Mean difference of each frame to the one before, in grey levels, (T - 1,)."""
        return _difference(self.some[1:], self.some[:-1]) if len(self.some) > 1 else np.zeros(0)

    @cached_property
    def frozen(self) -> float:
        """Largest mean difference of a frame to the first one, in grey levels; infinite for a single frame."""
        if len(self.some) < 2:
            return np.inf
        return float(_difference(self.some[1:], self.some[:1]).max())

    @cached_property
    def dark(self) -> np.ndarray:
        """Whether each frame is black, (T,)."""
        return (self.some > DARK).any(axis=-1).mean(axis=(1, 2)) < LIT


def _difference(frames: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the mean absolute difference of frames (T, h, w, 3) to others, (T,)."""
    changes = (np.maximum(frames, others) - np.minimum(frames, others)).reshape(len(frames), frames[0].size)
    return changes.sum(axis=1, dtype=np.uint32) / changes.shape[1]


def _black(signs: ClipSigns) -> Measured | None:
    return Measured(float(signs.dark.mean()), f"{int(signs.dark.sum())} of {len(signs.dark)} frames")


def _frozen(signs: ClipSigns) -> Measured | None:
    return None if signs.dark.all() else Measured(signs.frozen, f"{len(signs.some)} frames show the same image")


def _repeated(signs: ClipSigns) -> Measured | None:
    if len(signs.some) < 2 or signs.frozen < FROZEN or signs.dark.all():
        return None
    same = signs.changes < SAME
    return Measured(float(same.mean()), f"{int(same.sum())} of {len(signs.some)} frames repeat the one before")


def _frame_rate(signs: ClipSigns) -> Measured | None:
    fps = signs.clip.fps
    return None if fps is None or signs.clip.n_frames < 2 else Measured(fps, f"{fps:.4g} frames per second")


def _still(signs: ClipSigns) -> Measured | None:
    return Measured(signs.clip.n_frames, "a single frame")


def _small_frame(signs: ClipSigns) -> Measured | None:
    height, width = signs.clip.frames.shape[1:3]
    return Measured(min(height, width), f"{height} x {width} pixels")


def _text(signs: ClipSigns) -> Measured | None:
    """Measure bright pixels beside much darker ones that do not move or are outside the regions of the file."""
    frames = signs.clip.frames
    places = np.unique(np.linspace(0, len(frames) - 1, FEWEST_FRAMES).round().astype(int))
    rows = max(frames.shape[1] // ROWS, 1)
    some = frames[places, ::rows]
    still = len(places) < FEWEST_FRAMES or signs.frozen < FROZEN
    fixed = np.zeros(some.shape[1:3], bool) if still else (some.max(axis=0) - some.min(axis=0) <= STATIC).all(axis=-1)
    if signs.clip.regions:
        outside = np.ones(frames.shape[1:3], bool)
        for left, top, right, bottom in signs.clip.regions:
            outside[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)] = False
        fixed |= outside[::rows]
    elif still:
        return None  # Text cannot be told from tissue.
    level = some[0].max(axis=-1).astype(np.int16)
    edge = (np.abs(np.diff(level, axis=1)) >= CONTRAST) & fixed[:, 1:] & fixed[:, :-1]
    bright = edge & (np.maximum(level[:, 1:], level[:, :-1]) >= BRIGHT)
    return Measured(100 * float(bright.mean()), "text or graphics; --overlays mask blackens them")


def _doppler(signs: ClipSigns) -> Measured | None:
    if not signs.clip.kind:
        return None
    return Measured(float(signs.clip.kind in (COLOUR, SPECTRAL)), f"its header declares {signs.clip.kind} data")


# ---- The table --------------------------------------------------------------------------------------------------------

FLAT, LEAD_LIMIT, FROZEN = 0.05, 0.1, 0.5
AMPLITUDES = (0.05, 20.0)
"""Plausible amplitudes of an ECG in mV, less than a factor of 1000 apart, so that only one unit fits."""

CHECKS: tuple[Check, ...] = (
    Check("flat lead", ("ecg",), "smallest peak-to-peak amplitude of a lead, mV", FLAT, None, "at least 0.2 mV in 590 real ECGs", _flat),
    Check("clipped", ("ecg",), "samples at the extreme of a lead, relative to those in the next 5 % of its range", None, 0.5, "at most 0.05 in 590 real ECGs; waves pass through the range next to their peak", _clipped),
    Check("gap", ("ecg",), "longest constant stretch of a lead, s", None, GAP, "at most 0.33 s in 590 real ECGs, between beats", _gap),
    Check("large amplitude", ("ecg",), "largest absolute value, mV", None, AMPLITUDES[1], "no heart reaches it; microvolts read as millivolts exceed it", _large),
    Check("small amplitude", ("ecg",), "median half range of the leads, mV", AMPLITUDES[0], None, "at least 0.28 mV in 590 real ECGs; volts read as millivolts are below it", _small),
    Check("shorter than declared", ("ecg",), "time at both ends during which no lead changes, s", None, GAP, "at most 0.11 s in 590 real ECGs, at the end of PTB-XL", _short),
    Check("limb leads contradict each other", ("ecg",), "RMS deviation from Einthoven and Goldberger relative to the limb leads", None, LEAD_LIMIT, "at most 0.06 in 590 real ECGs, and at least 0.14 with two leads exchanged", _contradiction),
    Check("sampling rate", ("ecg",), "log2 of heart rate over QRS width, relative to the typical ratio", -1.55, 1.55, "between -1.49 and 1.53 in 590 real ECGs; twice the rate adds 2", _rate, thorough=True),
    Check("noise only", ("ecg",), "median correlation of the beats with their average", 0.5, None, "at least 0.89 in real ECGs and at most 0.22 in noise", _noise, thorough=True),
    Check("black", ("video", "image"), "fraction of black frames", None, 0.0, "a frame of an ultrasound shows tissue", _black),
    Check("frozen", ("video",), "largest mean difference to the first frame, grey levels", FROZEN, None, "the heart moves", _frozen),
    Check("repeated frames", ("video",), "fraction of frames that equal the one before", None, 0.1, "a conversion of the frame rate repeats frames", _repeated),
    Check("frame rate", ("video",), "frames per second", 5.0, 400.0, "frame rates of cardiac ultrasound", _frame_rate),
    Check("still", ("video",), "number of frames", 2, None, "a clip was expected", _still),
    Check("frame size", ("video", "image"), "smaller side, pixels", 16, None, "no structure of the heart is visible", _small_frame),
    Check("text", ("video", "image"), "edges of bright pixels that do not move or are outside the ultrasound, % of pixels", None, 0.05, "patients and measurements may be readable", _text, thorough=True),
    Check("Doppler or M-mode", ("video", "image"), "1 if the header declares colour flow, a spectrum or M-mode", None, 0.0, "B-mode was expected", _doppler),
)  # fmt: skip


# ---- Recordings among others -------------------------------------------------------------------------------------------

FACTOR, FEWEST_OTHERS = 8.0, 10


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
