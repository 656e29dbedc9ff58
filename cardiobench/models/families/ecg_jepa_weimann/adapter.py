"""ECG-JEPA of Weimann and Conrad: 12 leads at 500 Hz in windows of 10 s, clipped at five standard deviations.

Preprocessing: `pretrain.py` and `data/transforms.py` of the repository (commit ce8d436).
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from scipy.signal import butter, filtfilt, resample

from cardiobench.core.errors import BadModel
from cardiobench.models.blocks.signal_encoder import SignalEncoder, TokenExtractor, described, loaded
from cardiobench.models.cards import ModelCard
from cardiobench.models.families.ecg_jepa_weimann.network import SAMPLES, SIZES, EcgJepaWeimann
from cardiobench.models.files import ModelFiles
from cardiobench.models.signal import EVERY, standardise, windows, zero_absent
from cardiobench.models.weights import below, read_weights

COMPONENT = "adapter ecg-jepa-weimann"
VERSION = 1

FS = 500
LIMIT = 5.0  # Standard deviations.
WANDER = 0.5  # Cut-off in Hz of the high-pass filter applied to CODE-15 % and St Petersburg before pretraining.
WEIGHTS = ("ecg_jepa_weimann.pt", "chkpt_100000.pt", "chkpt_100000.min.pt")
# Mean and standard deviation of the leads in mV over folds 1 to 8 of PTB-XL, from `pretrain.py` of the authors.
PTB_XL_MEAN = np.array([-2, -2, 0, 2, -1, -1, 0, -1, -2, -1, -1, -1]) / 1000
PTB_XL_STD = np.array([191, 166, 173, 142, 149, 147, 235, 338, 335, 299, 294, 242]) / 1000


def scaled(signal: np.ndarray, variant: str = "per_record", present: Sequence[int] | slice = EVERY) -> np.ndarray:
    """Standardise every lead of a signal (n, 12) and clip it at 5 standard deviations.

    Args:
        signal: Signal in mV, (n, 12).
        variant: "ptb_xl": fixed mean and standard deviation of PTB-XL, which preserves amplitudes; any other: those of
            the record, where a flat lead becomes zero.
        present: Columns of the available leads; others become zero.
    """
    fixed = (signal - PTB_XL_MEAN) / PTB_XL_STD
    ready = fixed if variant == "ptb_xl" else standardise(signal)
    return zero_absent(np.clip(ready, -LIMIT, LIMIT), present)


def prepare(
    signal: np.ndarray, fs: float, variant: str = "per_record", present: Sequence[int] | slice = EVERY
) -> np.ndarray:
    """Prepare a record as input of the network.

    Args:
        signal: Signal in mV, (n, 12).
        fs: Sampling rate in Hz.
        variant: "per_record" or "ptb_xl", see `scaled`; "high_pass" applies a 0.5 Hz high-pass filter at the record's
            own rate (Butterworth of order 4, forwards and backwards), as for CODE-15 % and St Petersburg, then
            `per_record`.
        present: Columns of the leads that are there.

    Returns:
        Parts, (P, 12, 5000); records shorter than 10 s are followed by zeros.
    """
    if variant == "high_pass":
        signal = filtfilt(*butter(4, WANDER, "highpass", fs=fs), signal, axis=0)
    at_500 = signal if fs == FS else resample(signal, int(FS / fs * len(signal)), axis=0)
    return windows(scaled(at_500, variant, present), SAMPLES).transpose(0, 2, 1)


def size_of(state: dict[str, torch.Tensor], what: str) -> str:
    """Return the published size of the network, given the width of the tokens in the weights.

    Raises:
        BadModel: No published size has this width.
    """
    dim = state["norm.weight"].numel() if "norm.weight" in state else 0
    matching = [size for size, numbers in SIZES.items() if numbers.dim == dim]
    if not matching:
        raise BadModel(
            f"{what}: the embedding width is {dim}; expected one of {', '.join(str(numbers.dim) for numbers in SIZES.values())}. "
            f"Give a checkpoint of the authors, in which the weights under 'model' are named 'target_encoder.*'."
        )
    return matching[0]


def load(card: ModelCard, source: ModelFiles, *, pooling: str, variant: str) -> SignalEncoder:
    """Load the target encoder from a checkpoint that the user supplies; `cls` pooling reads the register token.

    Raises:
        BadModel: Weights are missing, cannot be read safely, or do not match the network exactly.
    """
    weights = source.weights(WEIGHTS)
    state = below(read_weights(weights), "target_encoder.")
    network = loaded(partial(EcgJepaWeimann, size_of(state, card.id)), state, card.id)
    read = EcgJepaWeimann.with_register if pooling == "cls" else EcgJepaWeimann.tokens
    return SignalEncoder(
        **described(card, source, weights, pooling, variant),
        network=TokenExtractor(network, read),
        prepare=(ready := partial(prepare, variant=variant)),
        prepare_few=ready,
    )
