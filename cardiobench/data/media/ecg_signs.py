"""What the checks of ECGs measure; `media.checks` has the table of checks with their limits."""

from functools import cached_property
from statistics import median

import numpy as np

from cardiobench.data.media import ecg_beats
from cardiobench.data.media.lead_order import deviation, fitting_order, limb_covariance
from cardiobench.data.media.resample import resample
from cardiobench.data.media.types import LEADS, CheckValue, Ecg

FLAT = 0.05
"""Peak-to-peak amplitude in mV below which a lead is flat."""
BLOCK = 32
"""Samples in a row while extremes are searched."""
GAP = 0.5
"""Longest constant stretch of a recorded lead, in seconds."""
LEAD_LIMIT = 0.1
"""Largest deviation of limb leads in the right order."""
TOP = 0.05
"""Part of the range of a lead next to its extreme value, which a wave passes through and a limit cuts off."""
FEWEST_BEATS, FEWEST_SECONDS = 3, 2.0
TYPICAL_RATE, TYPICAL_QRS = 70.0, 60.0
"""Heart rate per minute and width of the steep part of the QRS complex in ms, about the medians of PTB-XL."""


class EcgSigns:
    """Properties of an ECG that several checks use, each computed once.

    The checks of every reading take a few microseconds each, so the twelve ranges are plain numbers, and samples are
    compared in rows of `BLOCK` samples, several times faster than in rows of twelve numbers.

    Attributes:
        ecg: The recording.
        signal: Its signal, (samples, 12).
        recorded: Positions of its leads.
    """

    def __init__(self, ecg: Ecg):
        self.ecg, self.signal = ecg, np.ascontiguousarray(ecg.signal)
        self.recorded = [place for place, lead in enumerate(LEADS) if lead in ecg.leads]

    @cached_property
    def block_extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest value of each lead in every `BLOCK`-th sample, (BLOCK, 12) each; fewer rows in a short signal."""
        whole = len(self.signal) // BLOCK * BLOCK
        if not whole:
            return self.signal, self.signal
        blocks = self.signal[:whole].reshape(-1, BLOCK * len(LEADS))
        low, high = (ufunc.reduce(blocks, axis=0).reshape(BLOCK, -1) for ufunc in (np.minimum, np.maximum))
        if (rest := len(self.signal) - whole) > 0:
            np.minimum(low[:rest], self.signal[whole:], out=low[:rest])
            np.maximum(high[:rest], self.signal[whole:], out=high[:rest])
        return low, high

    @cached_property
    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest value of each lead, (12,) each."""
        low, high = self.block_extremes
        return np.minimum.reduce(low, axis=0), np.maximum.reduce(high, axis=0)

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


def flat(signs: EcgSigns) -> CheckValue | None:
    """Measure the smallest peak-to-peak amplitude of a recorded lead."""
    smallest = min(signs.range[lead] for lead in signs.recorded)
    flat = [LEADS[lead] for lead in signs.recorded if signs.range[lead] < FLAT] if smallest < FLAT else []
    return CheckValue(smallest, ", ".join(flat))


def clipped(signs: EcgSigns) -> CheckValue | None:
    """Compare the samples at an extreme value, in several runs of two or more, with those just short of it."""
    worst = CheckValue(0.0)
    for sign, limit, blocks in zip((-1, 1), signs.extremes, signs.block_extremes, strict=True):
        # Six samples in three runs are in more than two rows of the blocks, unless the heart beats with their period.
        several = np.count_nonzero(blocks == limit, axis=0) > 2
        for lead in signs.varying if several.any() else ():
            if not several[lead]:
                continue
            values = signs.signal[:, lead]
            at = values == limit[lead]
            runs = [end - start for start, end in _runs(at) if end - start >= 2]
            if len(runs) < 3:
                continue
            below = sign * values >= sign * limit[lead] - TOP * signs.range[lead]
            value = sum(runs) / (1 + np.count_nonzero(below & ~at))
            if value > worst.value:
                worst = CheckValue(value, f"{LEADS[lead]} at {limit[lead]:.3g} mV, {len(runs)} times")
    return worst


def gap(signs: EcgSigns) -> CheckValue | None:
    """Measure the longest constant stretch of a lead that is not part of a silent end of all leads."""
    start, end = signs.silent_ends
    last = len(signs.signal) - 1
    inside = [
        (stop - first, lead, first, stop)
        for lead, first, stop in signs.still
        if not ((start and first == 0) or (end and stop == last))
    ]
    if not inside:
        return CheckValue(0.0)
    length, _, first, stop = max(inside)
    names = [LEADS[lead] for _, lead, begin, finish in inside if begin < stop and finish > first]
    fs = signs.ecg.fs
    return CheckValue(
        length / fs, f"{', '.join(dict.fromkeys(names))} constant from {first / fs:.3g} to {stop / fs:.3g} s"
    )


def short(signs: EcgSigns) -> CheckValue | None:
    """Measure the time at both ends during which no lead changes."""
    start, end = signs.silent_ends
    fs, total = signs.ecg.fs, len(signs.signal)
    return CheckValue((start + end) / fs, f"a signal of {(total - start - end) / fs:.3g} of {total / fs:.3g} s")


def large(signs: EcgSigns) -> CheckValue | None:
    """Measure the largest absolute value."""
    low, high = signs.extremes
    largest = np.maximum(-low, high)
    return CheckValue(float(largest.max()), f"in {LEADS[int(largest.argmax())]}; the unit or the gain may be wrong")


def amplitude(ecg: Ecg) -> float:
    """Return the median half range in mV of the leads that are not constant; 0 without one."""
    return _amplitude(EcgSigns(ecg))


def _amplitude(signs: EcgSigns) -> float:
    ranges = [signs.range[lead] for lead in signs.varying]
    return median(ranges) / 2 if ranges else 0.0


def small(signs: EcgSigns) -> CheckValue | None:
    """Measure the median half range; None if every lead is constant."""
    return CheckValue(_amplitude(signs), "the unit or the gain may be wrong") if signs.varying else None


def contradiction(signs: EcgSigns) -> CheckValue | None:
    """Measure the deviation of the limb leads from I and II, and find the order that fits."""
    recorded = [lead in signs.varying for lead in range(6)]
    covariance = limb_covariance(signs.signal)
    worst = deviation(covariance, recorded)
    if worst is None or worst <= LEAD_LIMIT:
        return CheckValue(worst) if worst is not None else None
    order = fitting_order(covariance, LEAD_LIMIT) if all(recorded) else ""
    return CheckValue(worst, order or "no exchange or inversion explains it")


def rate(signs: EcgSigns) -> CheckValue | None:
    """Compare heart rate and QRS width with typical ones; None without several beats."""
    beats = signs.beats
    if beats is None or len(beats.peaks) < FEWEST_BEATS or not len(beats.each):
        return None
    rate = 60 * ecg_beats.FS / float(np.median(np.diff(beats.peaks)))
    first, last = ecg_beats.qrs_limits(ecg_beats.activity(beats.average), 0.3)
    width = max(1000 * (last - first) / ecg_beats.FS, 8.0)
    # A wrong sampling rate multiplies the one and divides the other by the same factor.
    value = np.log2(rate / TYPICAL_RATE) - np.log2(width / TYPICAL_QRS)
    return CheckValue(float(value), f"{rate:.0f} beats per minute with a QRS complex of {width:.0f} ms")


def noise(signs: EcgSigns) -> CheckValue | None:
    """Measure the likeness of the beats to their average; None in a short recording."""
    beats = signs.beats
    if beats is None:
        return None
    if len(beats.each) < 2:
        return CheckValue(0.0, "no repeated beat") if len(signs.signal) >= 2 * FEWEST_SECONDS * signs.ecg.fs else None
    value = float(np.median(ecg_beats.likeness(beats.each, beats.average)))
    return CheckValue(value, "beats do not resemble their average")
