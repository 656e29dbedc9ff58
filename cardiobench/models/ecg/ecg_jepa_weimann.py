"""ECG-JEPA of Weimann and Conrad: 12 leads at 500 Hz in windows of 10 s, scaled and clipped at five deviations.

Preprocessing: `pretrain.py` and `data/transforms.py` of the repository (commit ce8d436).
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from scipy.signal import butter, filtfilt, resample

from cardiobench.core.errors import BadModel
from cardiobench.models.cards import ModelCard
from cardiobench.models.ecg.encoder import SignalEncoder, TokenExtractor, described, loaded
from cardiobench.models.files import ModelFiles
from cardiobench.models.nets.ecg_jepa_weimann import SAMPLES, SIZES, EcgJepaWeimann
from cardiobench.models.signal import EVERY, standardise, windows, zero_absent
from cardiobench.models.weights import below, read_weights

COMPONENT = "adapter ecg-jepa-weimann"
VERSION = 1

FS = 500
LIMIT = 5.0  # Standard deviations.
WANDER = 0.5  # Hz; what is slower was taken out of CODE-15 % and St Petersburg before pretraining
WEIGHTS = ("ecg_jepa_weimann.pt", "chkpt_100000.pt", "chkpt_100000.min.pt")
# Mean and standard deviation of the leads over folds 1 to 8 of PTB-XL in mV: constants of the authors' `pretrain.py`.
PTB_XL_MEAN = np.array([-2, -2, 0, 2, -1, -1, 0, -1, -2, -1, -1, -1]) / 1000
PTB_XL_STD = np.array([191, 166, 173, 142, 149, 147, 235, 338, 335, 299, 294, 242]) / 1000


def scaled(signal: np.ndarray, variant: str = "per_record", present: Sequence[int] | slice = EVERY) -> np.ndarray:
    """Standardise every lead of a signal (n, 12) and clip it at 5 standard deviations.

    Args:
        signal: Millivolts.
        variant: "ptb_xl": the fixed mean and deviation of PTB-XL, which keep what the height of the waves says; any
            other: those of the record itself, a flat lead becomes zero.
        present: Columns of the leads that are there; the others become zero.
    """
    fixed = (signal - PTB_XL_MEAN) / PTB_XL_STD
    ready = fixed if variant == "ptb_xl" else standardise(signal)
    return zero_absent(np.clip(ready, -LIMIT, LIMIT), present)


def prepare(
    signal: np.ndarray, fs: float, variant: str = "per_record", present: Sequence[int] | slice = EVERY
) -> np.ndarray:
    """Prepare a record as the network takes it.

    Args:
        signal: (n, 12), millivolts.
        fs: Sampling rate in Hz.
        variant: "per_record" or "ptb_xl", see `scaled`; "high_pass" takes out what is slower than 0.5 Hz at the record's
            own rate (Butterworth of order 4, both ways), as was done with CODE-15 % and St Petersburg, then `per_record`.
        present: Columns of the leads that are there.

    Returns:
        (P, 12, 5000); zeros follow a record that is shorter than 10 s.
    """
    if variant == "high_pass":
        signal = filtfilt(*butter(4, WANDER, "highpass", fs=fs), signal, axis=0)
    at_500 = signal if fs == FS else resample(signal, int(FS / fs * len(signal)), axis=0)
    return windows(scaled(at_500, variant, present), SAMPLES).transpose(0, 2, 1)


def size_of(state: dict[str, torch.Tensor], what: str) -> str:
    """Return the published size that the weights have, by the width of their tokens.

    Raises:
        BadModel: None of them.
    """
    dim = state["norm.weight"].numel() if "norm.weight" in state else 0
    matching = [size for size, numbers in SIZES.items() if numbers.dim == dim]
    if not matching:
        raise BadModel(
            f"{what}: tokens of length {dim}, expected one of {', '.join(str(numbers.dim) for numbers in SIZES.values())}. "
            f"A checkpoint of this model has the target encoder's weights under 'model', named 'target_encoder.*'."
        )
    return matching[0]


def load(card: ModelCard, source: ModelFiles, *, pooling: str, variant: str) -> SignalEncoder:
    """Load the target encoder from a checkpoint that the user supplies; `cls` pooling reads the register token.

    Raises:
        BadModel: No weights, weights that cannot be read safely, or that do not fit to the last key.
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
