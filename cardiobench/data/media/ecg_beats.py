"""Detection of beats, average beat, and limits of its QRS complex."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy import fft, ndimage

FS = 250  # Sampling rate in Hz of all functions here.
QUIET = 5  # Maximum gap in samples within a QRS complex, 16 ms.
BEFORE, AFTER = 90, 135  # Samples before and after the R peak of a beat: 360 and 540 ms.


def clean(ecg: np.ndarray) -> np.ndarray:
    """Band-pass a signal (n, leads) to 0.5-40 Hz without phase shift; zeros if it is shorter than 0.3 s."""
    ecg = ecg.astype(np.float32)
    return zero_phase(ecg, 0.5, 40) if len(ecg) >= FS * 0.3 else np.zeros_like(ecg)


def zero_phase(ecg: np.ndarray, low: float, high: float) -> np.ndarray:
    """Filter a signal (n, leads) with a second-order Butterworth band-pass, forwards and backwards.

    The filter is applied in the frequency domain, which is four times faster. The ends are extended by up to two
    seconds of odd reflection.
    """
    edge = min(2 * FS, len(ecg) - 1)
    before, after = 2 * ecg[0] - ecg[edge:0:-1], 2 * ecg[-1] - ecg[-2 : -edge - 2 : -1]
    size = fft.next_fast_len(len(ecg) + 2 * edge, real=True)
    spectrum = fft.rfft(np.concatenate([before, ecg, after]), size, axis=0)
    return fft.irfft(spectrum * _gain(size, low, high), size, axis=0)[edge : edge + len(ecg)]


@lru_cache(maxsize=32)
def _gain(size: int, low: float, high: float) -> np.ndarray:
    from scipy import signal  # Imported here, because the import takes a second.

    sections = signal.butter(2, (low, high), "bandpass", fs=FS, output="sos")
    _, response = signal.sosfreqz(sections, np.fft.rfftfreq(size, 1 / FS), fs=FS)
    return (np.abs(response) ** 2).astype(np.float32)[:, None]


def median(values: np.ndarray) -> np.ndarray:
    """Compute the median over the first axis of (n, ...), three times faster than `numpy.median` for a few beats."""
    ranked = np.sort(values, axis=0)
    return (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]) / 2


def r_peaks(ecg: np.ndarray) -> np.ndarray:
    """Detect R peaks on the energy of all leads between 6 and 24 Hz; return their sample indices.

    Each lead is scaled by its typical amplitude, so that a noisy electrode does not dominate. Peaks are at least 240 ms
    apart and above a fraction of the record's typical peak; pauses longer than 1.7 median intervals are searched again
    with half that fraction.

    Args:
        ecg: Filtered signal, (n, leads), at 250 Hz.
    """
    from scipy.signal import find_peaks

    if len(ecg) < FS:
        return np.zeros(0, dtype=int)
    band = zero_phase(ecg, 6, 24)
    some = np.sort(np.abs(band[::3]), axis=0)
    scale = some[int(0.98 * len(some))]
    used = scale > 0.005
    if not used.any():
        return np.zeros(0, dtype=int)
    limited = np.clip(band[:, used] / scale[used], -2, 2)
    energy = ndimage.uniform_filter1d(np.mean(limited**2, axis=1), int(0.09 * FS))
    envelope = np.sqrt(np.maximum(energy, 0))  # The running sum may become negative by rounding.
    candidates, _ = find_peaks(envelope, distance=int(0.24 * FS))
    if not len(candidates):
        return candidates
    height = envelope[candidates]
    # A record has at least one beat per two seconds, so the typical peak is the median of that many highest peaks.
    typical = np.median(np.sort(height)[-max(int(len(ecg) / FS / 2), 1) :])
    peaks = candidates[height > 0.5 * typical]
    if len(peaks) > 2:
        pause = 1.7 * np.median(np.diff(peaks))
        weaker = candidates[height > 0.25 * typical]
        gaps = [(a, b) for a, b in pairwise(peaks) if b - a > pause]
        missed = [w for a, b in gaps for w in weaker if a + 0.36 * FS < w < b - 0.36 * FS]
        peaks = np.sort(np.append(peaks, missed)).astype(int)
    return peaks


@dataclass(frozen=True)
class Beats:
    """Beats of a record.

    Attributes:
        peaks: Sample indices of all R peaks.
        each: Complete beats, baseline-corrected and aligned, (beats, BEFORE + AFTER, leads).
        average: Median beat, (BEFORE + AFTER, leads); zero without beats.
        onset: First sample of the QRS complex in the average beat.
        offset: Last sample of the QRS complex.
    """

    peaks: np.ndarray
    each: np.ndarray
    average: np.ndarray
    onset: int
    offset: int


def find_beats(ecg: np.ndarray) -> Beats:
    """Find the beats of a filtered signal (n, leads) at 250 Hz."""
    peaks = r_peaks(ecg)
    whole = peaks[(peaks >= BEFORE + 10) & (peaks < len(ecg) - AFTER - 10)]
    length = BEFORE + AFTER
    if not len(whole):
        return Beats(peaks, np.zeros((0, length, ecg.shape[1])), np.zeros((length, ecg.shape[1])), BEFORE, BEFORE)
    aligned = whole + _shifts(ecg, whole)
    each = _cut(ecg, aligned)
    average = median(each)
    onset, offset = qrs_limits(activity(average))
    level = average[max(onset - 8, 0) : max(onset - 2, 1)].mean(axis=0)
    return Beats(peaks, each - level, average - level, onset, offset)


def _cut(ecg: np.ndarray, peaks: np.ndarray) -> np.ndarray:
    return ecg[peaks[:, None] + np.arange(-BEFORE, AFTER)]


def _shifts(ecg: np.ndarray, peaks: np.ndarray) -> np.ndarray:
    """Return the shift (beats,), -10 to 10 samples, that aligns each QRS best with the median QRS over all leads."""
    core, steps = np.arange(-20, 25), np.arange(-10, 11)
    template = median(ecg[peaks[:, None] + core])
    template = template - template.mean(axis=0)
    stretch = ecg[peaks[:, None] + np.arange(-30, 35)]
    fit = [np.einsum("btl,tl->b", stretch[:, step + 10 : step + 55], template) for step in steps]
    return steps[np.argmax(fit, axis=0)]


def activity(average: np.ndarray) -> np.ndarray:
    """Compute the slope of the average beat over all leads, smoothed over 12 ms, relative to its maximum.

    Returns an array (samples,).
    """
    speed = np.sqrt(np.mean(np.gradient(average, axis=0) ** 2, axis=1))
    speed[1:-1] = (speed[:-2] + speed[1:-1] + speed[2:]) / 3
    return speed / max(speed[BEFORE - 30 : BEFORE + 40].max(), 1e-9)


def qrs_limits(speed: np.ndarray, share: float = 0.12) -> tuple[int, int]:
    """Return the first and last sample of the QRS complex, where the slope falls below a fraction of its maximum.

    With noise, the fraction is raised to three times the slope at rest (before the P wave and after the T wave), but at
    most to 0.3. Gaps of up to 16 ms inside the complex are ignored.

    Args:
        speed: Slope of the average beat from `activity`, (samples,).
        share: Fraction of the maximum.
    """
    rest = np.partition(speed, len(speed) // 4)[len(speed) // 4]  # Lower quartile of the slope.
    active = np.flatnonzero(speed > min(max(3 * rest, share), max(share, 0.3)))
    middle = BEFORE - 15 + int(speed[BEFORE - 15 : BEFORE + 15].argmax())
    if not len(active):
        return middle, middle
    breaks = np.flatnonzero(np.diff(active) > QUIET)
    starts, ends = np.append(-1, breaks) + 1, np.append(breaks, len(active) - 1)
    for start, end in zip(active[starts], active[ends], strict=True):
        if start <= middle <= end:
            return max(int(start), BEFORE - 40), min(int(end), BEFORE + 55)
    return middle, middle


def likeness(each: np.ndarray, average: np.ndarray) -> np.ndarray:
    """Correlate each beat, (beats, samples, leads), with the average beat over all leads. Returns an array (beats,)."""
    each = (each - each.mean(axis=1, keepdims=True)).reshape(len(each), -1)
    wanted = (average - average.mean(axis=0)).ravel()
    size = np.linalg.norm(each, axis=1) * np.linalg.norm(wanted)
    return np.divide(each @ wanted, size, out=np.zeros(len(each)), where=size > 1e-9)
