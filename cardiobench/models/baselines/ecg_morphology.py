"""Classical measurements of a 12-lead ECG without learning: rhythm, intervals, axis, amplitudes, ST, T and P wave."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import signal

from cardiobench.data.media.ecg_beats import (
    BEFORE,
    FS,
    Beats,
    activity,
    clean,
    find_beats,
    likeness,
    qrs_limits,
)
from cardiobench.data.media.resample import resample
from cardiobench.data.media.types import LEADS, Ecg
from cardiobench.models.cards import ModelCard
from cardiobench.models.signal import checked

if TYPE_CHECKING:
    import torch

COMPONENT = "adapter ecg-morphology"
VERSION = 1

MS = FS / 1000  # Samples per millisecond.

Features = dict[str, Any]  # Name -> number or array of fixed shape.


def ecg_features(ecg: np.ndarray) -> Features:
    """Measure a recording; returns name -> number or array of fixed shape, all finite.

    A record without detected beats gets zeros and `has_beats` 0.

    Args:
        ecg: Signal in mV at 250 Hz, (samples, 12), leads in the order of `LEADS`.
    """
    cleaned = clean(ecg)
    beats = find_beats(cleaned)
    features = {
        "has_beats": float(len(beats.each) > 0),
        **rhythm(beats.peaks / FS),
        **intervals(beats),
        **per_lead(beats),
        **atrial(cleaned, beats),
        **variability(beats),
    }
    return features | {"criteria": criteria(features)}


def criteria(features: Features) -> np.ndarray:
    """Score textbook signs of conduction disturbances as a vector of numbers from 0 (absent) to about 2.

    In order: QRS over 100 ms, over 120 ms; PR over 180 ms, over 200 ms; left axis (beyond -30 degrees), right axis
    (beyond 100 degrees); positive end of QRS in V1 and negative in V6 and I (right bundle), alone and in a wide QRS;
    negative end in V1 and positive in V6 and I (left bundle), alone and in a wide QRS; second R in V1.
    """

    def beyond(value: float, limit: float, span: float) -> float:
        return float(np.clip((value - limit) / span, 0, 2))

    qrs, pr = 100 * features["qrs"][2], 100 * features["p_onset_to_qrs"]
    axis = 180 * features["axis"][2]
    end = features["last_40ms"]
    right = beyond(end[6], 0.02, 0.15) + beyond(-end[11], 0.02, 0.15) + beyond(-end[0], 0.02, 0.15)
    left = beyond(-end[6], 0.1, 0.4) + beyond(end[11], 0.1, 0.3) + beyond(end[0], 0.1, 0.3)
    wide = beyond(qrs, 100, 20)
    signs = (
        wide,
        beyond(qrs, 120, 20),
        beyond(pr, 180, 40),
        beyond(pr, 200, 40),
        beyond(-axis, 30, 30),
        beyond(axis, 100, 40),
        right / 3,
        right / 3 * wide,
        left / 3,
        left / 3 * wide,
        beyond(features["second_r"][0], 0.05, 0.3),
    )
    return np.array(signs)


def rhythm(times: np.ndarray) -> Features:
    """Compute heart rate and its irregularity from the times of the R peaks in seconds."""
    rr = np.diff(times)
    names = (
        "rate",
        "rr_mean",
        "rr_sd",
        "rr_cv",
        "rmssd",
        "rr_min",
        "rr_max",
        "pnn50",
        "turning",
        "entropy",
        "premature",
    )
    if len(rr) < 2:
        return {"beats": len(times) / 20, **dict.fromkeys(names, 0.0)}
    step = np.diff(rr)
    middle = np.median(rr)
    inner = step[:-1] * step[1:] < 0
    share = np.histogram(rr / middle, bins=12, range=(0.4, 1.6))[0] / len(rr)
    return {
        "beats": len(times) / 20,
        "rate": 1 / middle,
        "rr_mean": rr.mean(),
        "rr_sd": rr.std(),
        "rr_cv": rr.std() / rr.mean(),
        "rmssd": np.sqrt(np.mean(step**2)),
        "rr_min": rr.min() / middle,
        "rr_max": min(rr.max() / middle, 5.0),
        "pnn50": np.mean(np.abs(step) > 0.05),
        "turning": inner.mean() if len(inner) else 0.0,
        "entropy": -np.sum(share[share > 0] * np.log(share[share > 0])),
        "premature": np.mean(rr < 0.8 * middle),
    }


def intervals(beats: Beats) -> Features:
    """Measure durations in units of 100 ms, QRS at several thresholds and QT (end of T), and the electrical axis."""
    average, onset, offset = beats.average, beats.onset, beats.offset
    speed = activity(average)
    durations = []
    for share in (0.05, 0.08, 0.12, 0.2, 0.3):
        first, last = qrs_limits(speed, share)
        durations.append((last - first) / MS / 100)
    # Time with a steep slope, which is less sensitive to noise than the limits of the QRS complex.
    around = speed[BEFORE - 30 : BEFORE + 45]
    fast = np.array([(around > share).sum() for share in (0.05, 0.1, 0.15, 0.25, 0.4)]) / MS / 100
    area = average[onset : offset + 1].sum(axis=0) / FS * 1000 / 100
    axis = np.arctan2(area[5], area[0])
    tail = speed[offset + int(60 * MS) :]
    quiet = np.flatnonzero(tail > 0.05)
    return {
        "qrs": np.array(durations),
        "qrs_fast": fast,
        "qt": (offset - onset + 60 * MS + (quiet[-1] if len(quiet) else 0)) / MS / 100,
        "axis": np.array([np.sin(axis), np.cos(axis), axis / np.pi]),
        "axis_strength": np.hypot(area[0], area[5]),
    }


def per_lead(beats: Beats) -> Features:
    """Measure the amplitudes (mV) of Q, R, S, the end of QRS, ST segment and T wave in each lead, and the time of R (100 ms)."""
    average, onset, offset = beats.average, beats.onset, beats.offset
    qrs = average[onset : offset + 1]
    peak = qrs.argmax(axis=0)
    rows = np.arange(len(qrs))[:, None]
    t_wave = average[offset + int(80 * MS) : offset + int(360 * MS)]
    return {
        "r": np.maximum(qrs.max(axis=0), 0),
        "q": np.minimum(np.where(rows <= peak, qrs, 0).min(axis=0), 0),
        "s": np.minimum(np.where(rows >= peak, qrs, 0).min(axis=0), 0),
        "r_time": peak / MS / 100,
        "last_40ms": average[max(offset - int(40 * MS), 0) : offset + 1].mean(axis=0),
        "second_r": np.array([_second_r(qrs[:, lead]) for lead in (6, 7, 11, 0, 4)]),
        "st": average[offset + int(40 * MS)],
        "t": np.take_along_axis(t_wave, np.abs(t_wave).argmax(axis=0)[None], axis=0)[0],
    }


def _second_r(wave: np.ndarray) -> float:
    """Measure the second rise (mV) of a wave after its first peak and trough: the R' of a bundle branch block."""
    if len(wave) < 3:
        return 0.0
    peaks, _ = signal.find_peaks(wave, prominence=0.03)
    first = peaks[0] if len(peaks) else 0
    lowest = first + wave[first:].argmin()
    return float(wave[lowest:].max() - wave[lowest])


def atrial(cleaned: np.ndarray, beats: Beats) -> Features:
    """Measure the P wave, the PR interval and the share of 4-9 Hz between beats (fibrillation waves)."""
    average, onset = beats.average, beats.onset
    start = max(onset - int(280 * MS), 0)
    window = average[start : max(onset - int(24 * MS), start + 2)]
    window = window - np.linspace(0, 1, len(window))[:, None] * (window[-1] - window[0]) - window[0]
    strength = np.sqrt((window**2).mean(axis=1))
    peak = int(strength.argmax())
    above = np.flatnonzero(strength > 0.4 * strength.max()) if strength.max() > 0 else np.zeros(1, dtype=int)
    each = beats.each[:, start : start + len(window)] if len(beats.each) else np.zeros((1, *window.shape))
    likenesses = likeness(each, window)
    return {
        "p_height": window.max(axis=0)[[1, 6]],
        "p_depth": window.min(axis=0)[[1, 6]],
        "p_energy": strength.mean(),
        "p_peak": strength.max(),
        "p_to_qrs": (onset - start - peak) / MS / 100,
        "p_onset_to_qrs": (onset - start - above[0]) / MS / 100,
        "p_width": len(above) / MS / 100,
        "p_likeness": likenesses.mean(),
        "p_likeness_low": np.percentile(likenesses, 20),
        "wavelets": np.array([wavelets(cleaned[:, lead]) for lead in (1, 6)]),
    }


def wavelets(lead: np.ndarray) -> float:
    """Compute the share of a lead's power at 1-30 Hz that is at 4-9 Hz."""
    frequency = np.fft.rfftfreq(2048, 1 / FS)
    pieces = np.stack([lead[start : start + 1024] for start in range(0, max(len(lead) - 1023, 1), 512)])
    power = np.mean(np.abs(np.fft.rfft(pieces * np.hanning(pieces.shape[1]), 2048)) ** 2, axis=0)
    total = power[(frequency > 1) & (frequency < 30)].sum()
    return float(power[(frequency >= 4) & (frequency <= 9)].sum() / total) if total > 1e-9 else 0.0


def variability(beats: Beats) -> Features:
    """Measure the similarity of the beats to their average, low for extrasystoles, varying conduction or noise."""
    likenesses = likeness(beats.each, beats.average) if len(beats.each) else np.zeros(1)
    return {"likeness": np.percentile(likenesses, (0, 20, 50))}


def feature_vector(ecg: Ecg) -> np.ndarray:
    """Concatenate all measurements of a recording into one float32 vector, in a fixed order."""
    features = ecg_features(resample(checked(ecg), ecg.fs, FS))
    return np.concatenate([np.ravel(value) for value in features.values()]).astype(np.float32)


class EcgMorphology:
    """Training-free ECG measurements, a baseline for models of the 12-lead ECG."""

    revision = str(VERSION)
    modalities = ("ecg",)
    pooling = "mean"
    sampling = None
    warnings = ()

    def __init__(self, card: ModelCard):
        self.name = card.id
        self.dim = len(feature_vector(Ecg(np.zeros((10 * FS, len(LEADS)), dtype=np.float32), FS)))
        self.preprocessing = card.preprocessing

    def transform(self, recording: Ecg) -> "torch.Tensor":
        """Measure one recording: features (1, dim)."""
        import torch

        return torch.from_numpy(feature_vector(recording))[None]

    def encode(self, parts: "torch.Tensor") -> "torch.Tensor":
        """Return the measurements (N, dim) unchanged."""
        return parts

    def to(self, device: "torch.device") -> "EcgMorphology":
        """Return itself; there is nothing to move."""
        return self
