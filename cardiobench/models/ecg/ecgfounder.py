"""ECGFounder: 12 leads at 500 Hz in windows of 10 s, prepared in one of the three ways that its authors published.

* `filtered`: `dataset.py` of the repository (commit 04edac7).
* `zscore`: `ptbxl_eval.py` of the same.
* `paper`: the text of arXiv 2410.04133. It gives cut-offs but neither the order of the high-pass filter nor whether
  filters run both ways; second order and both ways are taken here.
"""

from functools import partial

import numpy as np
from scipy.signal import butter, filtfilt, iirnotch, medfilt

from cardiobench.models.cards import ModelCard
from cardiobench.models.ecg.ecgfounder_heads import EcgFounder
from cardiobench.models.ecg.encoder import SignalEncoder, TokenExtractor, described, loaded
from cardiobench.models.files import ModelFiles
from cardiobench.models.nets.net1d import Net1D
from cardiobench.models.signal import interpolate, windows
from cardiobench.models.weights import read_weights

COMPONENT = "adapter ecgfounder"
VERSION = 1

FS = 500
WINDOW = 10 * FS
MAINS = 50.0  # Hz
WEIGHTS = ("12_lead_ECGFounder.pth",)


def resampled(signal: np.ndarray, samples: int) -> np.ndarray:
    """Resample a signal (n, leads): every second sample for half as many, else linear interpolation."""
    return signal[::2] if len(signal) == 2 * samples else interpolate(signal, samples)


def filtered(signal: np.ndarray, fs: float = FS) -> np.ndarray:
    """Filter a signal (n, leads): 50 Hz notch, 0.67-40 Hz band-pass, minus a running median of 0.4 s."""
    out = filtfilt(*iirnotch(MAINS, 30, fs), signal, axis=0)
    out = filtfilt(*butter(4, (0.67, 40), "bandpass", fs=fs), out, axis=0)
    width = int(0.4 * fs) + 1
    width += 1 - width % 2
    return out - np.stack([medfilt(lead, width) for lead in out.T], axis=1)


def paper_filtered(signal: np.ndarray, fs: float = FS) -> np.ndarray:
    """Filter a signal (n, leads) as the paper's text says: 0.5 Hz high-pass, 50 Hz low-pass, notch."""
    out = filtfilt(*butter(2, 0.5, "highpass", fs=fs), signal, axis=0)
    out = filtfilt(*butter(2, 50, "lowpass", fs=fs), out, axis=0)
    return filtfilt(*iirnotch(MAINS, 30, fs), out, axis=0)


def standardised(signal: np.ndarray) -> np.ndarray:
    """Standardise a signal (..., n, leads) with one mean and standard deviation over all of its values."""
    over = (-2, -1)
    centred = signal - signal.mean(axis=over, keepdims=True)
    return centred / (signal.std(axis=over, keepdims=True) + 1e-8)


FILTERS = {"filtered": filtered, "zscore": lambda signal: signal, "paper": paper_filtered}


def prepare(signal: np.ndarray, fs: float, variant: str = "filtered") -> np.ndarray:
    """Prepare a recording as input of the network.

    Args:
        signal: (n, 12), millivolts.
        fs: Sampling rate in Hz.
        variant: One of `FILTERS`.

    Returns:
        (P, 12, 5000): windows of 10 s, each standardised; zeros follow a shorter record.
    """
    clean = FILTERS[variant](resampled(signal, round(len(signal) * FS / fs)))
    if len(clean) < WINDOW:
        return windows(standardised(clean), WINDOW).transpose(0, 2, 1)
    return standardised(windows(clean, WINDOW)).transpose(0, 2, 1)


def load(card: ModelCard, source: ModelFiles, *, pooling: str, variant: str) -> SignalEncoder:
    """Load ECGFounder for 12 leads; with mean pooling its own labels predict AF and CD.

    Raises:
        BadModel: no weights, weights that cannot be read safely, or that do not fit to the last key.
    """
    weights = source.weights(WEIGHTS)
    network = loaded(Net1D, read_weights(weights), card.id)
    parts = {
        **described(card, source, weights, pooling, variant),
        "network": TokenExtractor(network, Net1D.tokens),
        "prepare": partial(prepare, variant=variant),
    }
    if pooling != "mean":
        return SignalEncoder(**parts)
    return EcgFounder(**parts, head=network.dense)
