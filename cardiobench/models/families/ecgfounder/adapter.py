"""ECGFounder: 12 leads at 500 Hz in windows of 10 s, with one of three published preprocessing variants.

* `filtered`: `dataset.py` of the repository (commit 04edac7).
* `zscore`: `ptbxl_eval.py` of the same repository.
* `paper`: the text of arXiv 2410.04133. It states neither the order of the high-pass filter nor the direction of the
filters; second order, forwards and backwards, is used here.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.signal import butter, filtfilt, iirnotch, medfilt

from cardiobench.data.media.types import LEADS
from cardiobench.models.blocks.net1d import Net1D
from cardiobench.models.blocks.raw_crops import RawCrops
from cardiobench.models.blocks.signal_encoder import SignalEncoder, TokenExtractor, described, loaded
from cardiobench.models.cards import ModelCard
from cardiobench.models.families.ecgfounder.heads import EcgFounder
from cardiobench.models.files import ModelFiles
from cardiobench.models.signal import EVERY, interpolate, windows, zero_absent
from cardiobench.models.weights import read_weights

COMPONENT = "adapter ecgfounder"
VERSION = 1

FS = 500
WINDOW = 10 * FS
MAINS = 50.0  # Hz
WEIGHTS = ("12_lead_ECGFounder.pth", "1_lead_ECGFounder.pth")
FIRST = "first_conv.conv.weight"
ONE_LEAD = "the weights are those for lead I only, not those for 12 leads"


def resampled(signal: np.ndarray, samples: int) -> np.ndarray:
    """Resample a signal (n, leads), by decimation for half the rate, else by linear interpolation."""
    return signal[::2] if len(signal) == 2 * samples else interpolate(signal, samples)


def filtered(signal: np.ndarray, fs: float = FS) -> np.ndarray:
    """Filter a signal (n, leads): 50 Hz notch, 0.67-40 Hz band-pass, minus a running median of 0.4 s."""
    out = filtfilt(*iirnotch(MAINS, 30, fs), signal, axis=0)
    out = filtfilt(*butter(4, (0.67, 40), "bandpass", fs=fs), out, axis=0)
    width = int(0.4 * fs) + 1
    width += 1 - width % 2
    return out - np.stack([medfilt(lead, width) for lead in out.T], axis=1)


def paper_filtered(signal: np.ndarray, fs: float = FS) -> np.ndarray:
    """Filter a signal (n, leads) as described in the paper: 0.5 Hz high-pass, 50 Hz low-pass, notch."""
    out = filtfilt(*butter(2, 0.5, "highpass", fs=fs), signal, axis=0)
    out = filtfilt(*butter(2, 50, "lowpass", fs=fs), out, axis=0)
    return filtfilt(*iirnotch(MAINS, 30, fs), out, axis=0)


def standardised(signal: np.ndarray, present: Sequence[int] | slice = EVERY) -> np.ndarray:
    """Standardise a signal (..., n, leads) by the mean and standard deviation over all values of available leads."""
    over, there = (-2, -1), signal[..., present]
    centred = signal - there.mean(axis=over, keepdims=True)
    return zero_absent(centred / (there.std(axis=over, keepdims=True) + 1e-8), present)


FILTERS = {"filtered": filtered, "zscore": lambda signal: signal, "paper": paper_filtered}


def prepare(
    signal: np.ndarray, fs: float, variant: str = "filtered", present: Sequence[int] | slice = EVERY
) -> np.ndarray:
    """Prepare a recording as input of the network.

    Args:
        signal: Signal in mV, (n, 12).
        fs: Sampling rate in Hz.
        variant: One of `FILTERS`.
        present: Columns of the available leads.

    Returns:
        Parts, (P, 12, 5000): standardised windows of 10 s; shorter records are followed by zeros.
    """
    clean = FILTERS[variant](resampled(signal, round(len(signal) * FS / fs)))
    if len(clean) < WINDOW:
        return windows(standardised(clean, present), WINDOW).transpose(0, 2, 1)
    return standardised(windows(clean, WINDOW), present).transpose(0, 2, 1)


def prepare_one(signal: np.ndarray, fs: float, variant: str = "filtered") -> np.ndarray:
    """Prepare lead I of a recording like `prepare` for the single-lead network. Returns an array (P, 1, 5000)."""
    return prepare(signal[:, :1], fs, variant)


def load(card: ModelCard, source: ModelFiles, *, pooling: str, variant: str) -> SignalEncoder:
    """Load ECGFounder for 12 leads, or for lead I if only those weights are given; mean pooling includes its labels.

    Raises:
        BadModel: Weights are missing, cannot be read safely, or do not match the network exactly.
    """
    weights = source.weights(WEIGHTS)
    state = read_weights(weights)
    one = FIRST in state and state[FIRST].shape[1:2] == (1,)
    network = loaded(partial(Net1D, leads=1) if one else Net1D, state, card.id)
    parts = {
        **described(card, source, weights, pooling, variant),
        "network": TokenExtractor(network, Net1D.tokens),
        "prepare": partial(prepare_one if one else prepare, variant=variant),
        "raw_crops": RawCrops(2.5, FS, ("I",) if one else LEADS),
    }
    if one:
        parts |= {"leads": ("I",), "warnings": (ONE_LEAD,)}
        parts["preprocessing"] = {**parts["preprocessing"], "leads": "I"}
    else:
        parts["prepare_few"] = parts["prepare"]
    if pooling != "mean":
        return SignalEncoder(**parts)
    return EcgFounder(**parts, head=network.dense)
