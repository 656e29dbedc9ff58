"""Steps from a recorded ECG to the input of a model: rate, length and scale."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.resample import resample
from cardiobench.data.media.types import Ecg

COMPONENT = "resampling"
VERSION = 1


def checked(ecg: Ecg) -> np.ndarray:
    """Check shape and values of an ECG; return its signal as float32 (samples, leads).

    Raises:
        BadMedia: There are no samples, not 12 leads, or values that are not finite.
    """
    signal = np.asarray(ecg.signal, dtype=np.float32)
    if signal.ndim != 2 or signal.shape[1] != 12 or not len(signal):
        raise BadMedia(f"an ECG has shape (samples, 12), got {signal.shape}. Leave the record out or repair it.")
    bad = np.count_nonzero(~np.isfinite(signal))
    if bad:
        raise BadMedia(
            f"ECG with {bad} of {signal.size} values that are not finite. Leave the record out or repair it."
        )
    return signal


def at_rate(ecg: Ecg, rate: float | None) -> Ecg:
    """Return an ECG resampled to a rate in Hz if it differs; None leaves it unchanged.

    Rates differ between datasets, so an encoder that sees them could recognise the hospital instead of the disease.
    """
    if rate is None or ecg.fs == rate:
        return ecg
    return replace(ecg, signal=resample(checked(ecg), ecg.fs, rate), fs=rate)


def interpolate(signal: np.ndarray, samples: int) -> np.ndarray:
    """Resample a signal (n, leads) to `samples` points by linear interpolation; both ends are kept.

    There is no low-pass filter, because several models were trained this way.
    """
    if samples == len(signal):
        return signal
    positions, numbers = np.linspace(0, samples - 1, len(signal)), np.arange(samples)
    return np.stack([np.interp(numbers, positions, lead) for lead in signal.T], axis=1)


def windows(signal: np.ndarray, samples: int) -> np.ndarray:
    """Cut a signal (n, leads) into consecutive windows of `samples`: (P, samples, leads), P >= 1.

    The remainder is dropped; a signal shorter than a window is followed by zeros.
    """
    if len(signal) < samples:
        signal = np.pad(signal, ((0, samples - len(signal)), (0, 0)))
    count = len(signal) // samples
    return signal[: count * samples].reshape(count, samples, -1)


def fit_length(signal: np.ndarray, samples: int) -> np.ndarray:
    """Crop a signal (n, leads) to its central `samples`, or zero-pad it on both sides; an odd sample goes to the end."""
    surplus = len(signal) - samples
    if surplus >= 0:
        return signal[surplus // 2 : surplus // 2 + samples]
    before = -surplus // 2
    return np.pad(signal, ((before, -surplus - before), (0, 0)))


EVERY = slice(None)
"""Columns of a signal with all leads."""


def zero_absent(signal: np.ndarray, present: Sequence[int] | slice) -> np.ndarray:
    """Return a signal (..., n, leads) with zeros in the columns of missing leads."""
    kept = np.zeros_like(signal)
    kept[..., present] = signal[..., present]
    return kept


def standardise(signal: np.ndarray) -> np.ndarray:
    """Standardise every lead of a signal (n, leads) to mean 0 and standard deviation 1; a flat lead becomes zero."""
    centred = signal - signal.mean(axis=0)
    scale = centred.std(axis=0)
    flat = scale < 1e-6
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, scale))
