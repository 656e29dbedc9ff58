"""HuBERT-ECG: the first 5 s of 12 leads, concatenated to a single signal of 6000 samples at 100 Hz.

Preprocessing: `utils.py` and `dataset.py` of the repository (commit affe1f9).
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from huggingface_hub.errors import StrictDataclassError
from scipy.signal import decimate, filtfilt, firwin, resample

from cardiobench.core.errors import BadMedia, BadModel
from cardiobench.models.blocks.signal_encoder import SignalEncoder, TokenExtractor, described, loaded
from cardiobench.models.cards import ModelCard
from cardiobench.models.families.hubert_ecg.network import SIZES, build, published_keys, tokens
from cardiobench.models.files import ModelFiles
from cardiobench.models.safe_folder import plain
from cardiobench.models.signal import EVERY, windows, zero_absent
from cardiobench.models.weights import read_weights

COMPONENT = "adapter hubert-ecg"
VERSION = 2

FS = 500
WINDOW = 5 * FS
BAND = (0.05, 47.0)  # Hz
WEIGHTS = ("model.safetensors",)


def filtered(signal: np.ndarray, fs: float) -> np.ndarray:
    """Band-pass a signal (n, leads) to 0.05-47 Hz at its own rate, with a filter of 0.3 s run forwards and backwards.

    Raises:
        BadMedia: The rate is too low for the band.
    """
    if fs <= 2 * BAND[1]:
        raise BadMedia(
            f"an ECG at {fs:g} Hz does not cover frequencies up to {BAND[1]:g} Hz. HuBERT-ECG needs more than {2 * BAND[1]:g} Hz."
        )
    taps = int(0.3 * fs)
    taps += 1 - taps % 2
    return filtfilt(firwin(taps, BAND, pass_zero=False, fs=fs), [1.0], signal, axis=0)


def scaled(signal: np.ndarray, present: Sequence[int] | slice = EVERY) -> np.ndarray:
    """Scale every lead of a signal (n, leads) to [-1, 1]; a flat lead becomes -1, a missing lead 0."""
    low, high = signal.min(axis=0), signal.max(axis=0)
    return zero_absent(2 * (signal - low) / (high - low + 1e-8) - 1, present)


def preprocessed(signal: np.ndarray, fs: float, present: Sequence[int] | slice = EVERY) -> np.ndarray:
    """Filter a signal (n, leads), Fourier-resample it to 500 Hz and scale every lead of the whole recording to [-1, 1]."""
    return scaled(resample(filtered(signal, fs), int(len(signal) * FS / fs), axis=0), present)


def flattened(window: np.ndarray) -> np.ndarray:
    """Flatten a window (2500, leads) at 500 Hz to one signal at 100 Hz, lead after lead.

    Returns an array (500 x leads,).

    The low-pass filter of the decimation runs across the boundaries of leads, as in the original code.
    """
    return decimate(window.T.ravel(), 5)


def prepare(
    signal: np.ndarray, fs: float, variant: str = "first", present: Sequence[int] | slice = EVERY
) -> np.ndarray:
    """Prepare a recording as input of the network.

    Args:
        signal: Signal in mV, (n, 12).
        fs: Sampling rate in Hz.
        variant: "first": the first 5 s, as published; "mean": all windows of 5 s, whose vectors are averaged later.
        present: Columns of the available leads.

    Returns:
        Parts, (P, 6000).
    """
    pieces = windows(preprocessed(signal, fs, present), WINDOW)
    parts = np.stack([flattened(piece) for piece in (pieces[:1] if variant == "first" else pieces)])
    absent = np.ones(signal.shape[1], dtype=bool)
    absent[present] = False
    parts.reshape(len(parts), len(absent), -1)[:, absent] = 0.0  # The low-pass filter runs into missing leads.
    return parts


def config(settings: Mapping[str, Any], state: Mapping[str, torch.Tensor], what: str) -> Mapping[str, Any]:
    """Return the settings of the network from config.json, else of the published size with the same width.

    Raises:
        BadModel: There is no config.json, and no published size has this width.
    """
    if settings:
        return plain(settings, f"{what}: config.json")
    width = len(state.get("encoder.layer_norm.weight", ()))
    known = {size["hidden_size"]: size for size in SIZES.values()}
    if width not in known:
        raise BadModel(
            f"{what}: there is no config.json, and the weights have width {width}; expected one of "
            f"{', '.join(map(str, known))}. Give the folder that holds model.safetensors and config.json."
        )
    return known[width]


def load(card: ModelCard, source: ModelFiles, *, pooling: str, variant: str) -> SignalEncoder:
    """Load HuBERT-ECG of any size from safetensors.

    Raises:
        BadModel: There are no safetensors, or weights do not match the network exactly.
    """
    refuse_pickled_settings(source)
    weights = source.weights(WEIGHTS)
    state = published_keys(read_weights(weights))
    settings = config(source.json("config.json"), state, card.id)
    try:
        network = loaded(partial(build, settings), state, card.id)
    except (TypeError, ValueError, StrictDataclassError) as error:
        raise BadModel(f"{card.id}: config.json does not describe a network: {error}. Copy it again.") from error
    return SignalEncoder(
        **described(card, source, weights, pooling, variant),
        network=TokenExtractor(network, tokens),
        prepare=(ready := partial(prepare, variant=variant)),
        prepare_few=ready,
    )


def refuse_pickled_settings(source: ModelFiles) -> None:
    """Raise `BadModel` if the only weights are a `.pt`, which stores settings as objects of the model's own code."""
    pickled = [file for file in source.files if file.endswith((".pt", ".pth"))]
    if pickled and source.find(WEIGHTS) in (None, *pickled):
        raise BadModel(
            f"{source.name}: {pickled[0]} keeps its settings as Python objects (`model_config`), which would run code "
            f"when read. Give model.safetensors and config.json of the same model on the Hub instead."
        )
