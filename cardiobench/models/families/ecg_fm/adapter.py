"""ECG-FM: records in windows of 5 s, each lead standardised over the whole record.

Preprocessing: `preprocess.py` of fairseq-signals (commit 6b9e137), as recommended by the authors of ECG-FM.
"""

from functools import partial

import numpy as np

from cardiobench.models.blocks.signal_encoder import SignalEncoder, TokenExtractor, described, loaded
from cardiobench.models.cards import ModelCard
from cardiobench.models.families.ecg_fm.network import Wav2Vec2Cmsc, published_keys
from cardiobench.models.files import ModelFiles
from cardiobench.models.signal import interpolate, windows
from cardiobench.models.weights import read_weights

COMPONENT = "adapter ecg-fm"
VERSION = 1

FS = 500
WINDOW = 5 * FS
PRETRAINED = "mimic_iv_ecg_physionet_pretrained.pt"
FINETUNED = "mimic_iv_ecg_finetuned.pt"


def resampled(signal: np.ndarray, fs: float) -> np.ndarray:
    """Resample a signal (n, leads) to 500 Hz by linear interpolation."""
    return interpolate(signal, int(len(signal) * FS / fs))


def standardised(signal: np.ndarray) -> np.ndarray:
    """Standardise every lead of a signal (n, leads) to mean 0 and standard deviation 1; a constant lead becomes zero."""
    centred = signal - signal.mean(axis=0)
    constant = np.ptp(signal, axis=0) == 0
    return np.where(constant, 0.0, centred / np.where(constant, 1.0, centred.std(axis=0)))


def prepare(signal: np.ndarray, fs: float, variant: str = "mean") -> np.ndarray:
    """Prepare a recording as input of the network.

    Args:
        signal: Signal in mV, (n, 12).
        fs: Sampling rate in Hz.
        variant: "mean": all windows of 5 s, whose vectors are averaged later; "first": only the first window.

    Returns:
        Parts, (P, 12, 2500).
    """
    pieces = windows(standardised(resampled(signal, fs)), WINDOW).transpose(0, 2, 1)
    return pieces[:1] if variant == "first" else pieces


def load(card: ModelCard, source: ModelFiles, *, pooling: str, variant: str) -> SignalEncoder:
    """Load ECG-FM from the pretrained checkpoint, or from the fine-tuned one if only that is given.

    Raises:
        BadModel: Weights are missing, cannot be read safely, or do not match the network exactly.
    """
    weights = source.weights((PRETRAINED, FINETUNED))
    state = read_weights(weights)
    tuned = "encoder.post_extract_proj.weight" in state
    # The fine-tuned checkpoint has a mask embedding only if masking was enabled during fine-tuning.
    state = {key: tensor for key, tensor in published_keys(state).items() if not tuned or key != "mask_emb"}
    network = loaded(partial(Wav2Vec2Cmsc, pretraining=not tuned), state, card.id)
    note = "the weights are those fine-tuned on labels of MIMIC-IV-ECG, not the pretrained ones"
    return SignalEncoder(
        **described(card, source, weights, pooling, variant),
        network=TokenExtractor(network, Wav2Vec2Cmsc.tokens),
        prepare=partial(prepare, variant=variant),
        warnings=(note,) if tuned else (),
    )
