"""What the checks of ECGs measure; `media.checks` has the table of checks with their limits."""

from functools import cached_property
from itertools import pairwise

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

    Every reading is checked, so the checks make few calls of NumPy: samples are compared in rows of `BLOCK` samples, several
    times faster than in rows of twelve numbers, both extremes in one array, and what is known of twelve leads is plain
    numbers.

    Attributes:
        ecg: The recording.
        signal: Its signal, (samples, 12).
        recorded: Positions of its leads.
        extremes: Smallest and negative largest value of each lead in every `BLOCK`-th sample, (2, BLOCK, 12); fewer rows
            in a short signal.
        limits: Smallest and negative largest value of each lead, (2, 12).
        range: Difference of largest and smallest value of each lead in mV.
        largest: Largest absolute value of each lead in mV.
        varying: Positions of the recorded leads that are not constant throughout.
    """

    def __init__(self, ecg: Ecg):
        self.ecg, self.signal = ecg, np.ascontiguousarray(ecg.signal)
        everything = ecg.leads == LEADS
        self.recorded = [place for place, lead in enumerate(LEADS) if everything or lead in ecg.leads]
        self.extremes = _block_extremes(self.signal)
        self.limits = np.minimum.reduce(self.extremes, axis=1)
        lowest, highest = self.limits.tolist()
        self.range: list[float] = [-low - high for low, high in zip(lowest, highest, strict=True)]
        self.largest: list[float] = [max(-low, -high) for low, high in zip(lowest, highest, strict=True)]
        self.varying = [lead for lead in self.recorded if self.range[lead] > 0]

    @cached_property
    def still(self) -> list[tuple[int, int, int]]:
        """Stretches (lead, first sample, last sample) of at least `GAP` in which a varying lead is constant."""
        length = max(int(GAP * self.ecg.fs), 5)
        some = self.signal[:: length // 5]
        same = some[1:] == some[:-1]
        twice = same[1:] & same[:-1]
        long = twice[2:] & twice[:-2]
        if not np.count_nonzero(long):  # Faster than any() for few elements.
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
        if not self.still:
            return 0, 0
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


def _block_extremes(signal: np.ndarray) -> np.ndarray:
    """Return smallest and negative largest value of each lead in every `BLOCK`-th sample of a signal (samples, 12)."""
    whole = len(signal) // BLOCK * BLOCK
    if not whole:
        return np.stack([signal, -signal])
    blocks, width = signal[:whole].reshape(-1, BLOCK * len(LEADS)), BLOCK * len(LEADS)
    found = np.empty((2, width), signal.dtype)
    low, high = np.minimum.reduce(blocks, out=found[0]), np.maximum.reduce(blocks, out=found[1])
    if whole < len(signal):
        rest = signal[whole:].reshape(-1)
        np.minimum(low[: len(rest)], rest, out=low[: len(rest)])
        np.maximum(high[: len(rest)], rest, out=high[: len(rest)])
    np.negative(high, out=high)
    return found.reshape(2, BLOCK, -1)


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """Return start and end of each run of true values in a bool array (n,)."""
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
    # Six samples in three runs are in more than two rows of the blocks, unless the heart beats with their period.
    at_limit = signs.extremes == signs.limits[:, None]
    if np.count_nonzero(at_limit) <= 2 * len(LEADS) + 1:
        return worst
    pairs = np.count_nonzero(at_limit & np.roll(at_limit, 1, axis=1), axis=1)
    for sign, limits, beside in zip((1, -1), signs.limits, pairs, strict=True):
        for lead in [one for one in signs.varying if beside[one] >= 2]:
            values, limit = signs.signal[:, lead], sign * limits[lead]
            at = np.flatnonzero(values == limit)
            if len(at) < 6:
                continue
            ends = np.flatnonzero(at[1:] > at[:-1] + 1) + 1
            runs = [end - start for start, end in pairwise([0, *ends.tolist(), len(at)]) if end - start >= 2]
            if len(runs) < 3:
                continue
            near = np.count_nonzero(sign * values <= limits[lead] + TOP * signs.range[lead]) - len(at)
            value = sum(runs) / (1 + near)
            if value > worst.value:
                worst = CheckValue(value, f"{LEADS[lead]} at {limit:.3g} mV, {len(runs)} times")
    return worst


def gap(signs: EcgSigns) -> CheckValue | None:
    """Measure the longest constant stretch of a lead that is not part of a silent end of all leads."""
    if not signs.still:
        return CheckValue(0.0)
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
    if not (start or end):
        return CheckValue(0.0)
    fs, total = signs.ecg.fs, len(signs.signal)
    return CheckValue((start + end) / fs, f"a signal of {(total - start - end) / fs:.3g} of {total / fs:.3g} s")


def large(signs: EcgSigns) -> CheckValue | None:
    """Measure the largest absolute value."""
    value = max(signs.largest)
    return CheckValue(value, f"in {LEADS[signs.largest.index(value)]}; the unit or the gain may be wrong")


def amplitude(ecg: Ecg) -> float:
    """Return the median half range in mV of the leads that are not constant; 0 without one."""
    return _amplitude(EcgSigns(ecg))


def _amplitude(signs: EcgSigns) -> float:
    ranges = sorted(signs.range[lead] for lead in signs.varying)
    return (ranges[len(ranges) // 2] + ranges[(len(ranges) - 1) // 2]) / 4 if ranges else 0.0


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


def header(signs: EcgSigns) -> CheckValue | None:
    """Count the statements of the header that the samples contradict; the note quotes the first two."""
    said = signs.ecg.contradictions
    return CheckValue(len(said), "; ".join(said[:2]) + ("; ..." if len(said) > 2 else ""))


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
