"""Resampling of a signal by polyphase filtering; its version is that of the component "resampling" of the encoders."""

from fractions import Fraction
from functools import cache

import numpy as np


def resample(signal: np.ndarray, fs: float, target: float) -> np.ndarray:
    """Resample a signal (samples, leads) by polyphase filtering at the exact ratio of the rates.

    Rates are rounded to 0.01 Hz. The signal is extended by its end values, so a nonzero baseline does not ring at the
    borders.

    Args:
        signal: Signal, (samples, leads).
        fs: Rate of the signal in Hz.
        target: Target rate in Hz.
    """
    from scipy.signal import resample_poly  # Imported here, because the import takes a second.

    ratio = Fraction(round(target * 100), round(fs * 100))
    if ratio == 1:
        return signal
    taps = _low_pass(max(ratio.numerator, ratio.denominator)).astype(signal.dtype)
    return resample_poly(signal, ratio.numerator, ratio.denominator, axis=0, window=taps, padtype="edge")


@cache
def _low_pass(rate: int) -> np.ndarray:
    """Design the filter of `resample_poly`, which would otherwise be designed in every call."""
    from scipy.signal import firwin

    return firwin(20 * rate + 1, 1 / rate, window=("kaiser", 5.0))
