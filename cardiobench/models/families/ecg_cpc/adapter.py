"""ECG-CPC: 12 leads in mV at 240 Hz in windows of 10 s, clipped but otherwise unchanged.

Preprocessing: `prepare_heedb` and `Resample` of AI4HealthUOL/ecg-fm-benchmarking (commit 6367295).
"""

import numpy as np

from cardiobench.models.blocks.raw_crops import RawCrops
from cardiobench.models.blocks.signal_encoder import SignalEncoder, TokenExtractor, described, loaded
from cardiobench.models.blocks.windowed_sinc import windowed_sinc
from cardiobench.models.cards import ModelCard
from cardiobench.models.families.ecg_cpc.network import SAMPLES, EcgCpc, published_keys
from cardiobench.models.files import ModelFiles
from cardiobench.models.signal import windows
from cardiobench.models.weights import read_weights

COMPONENT = "adapter ecg-cpc"
VERSION = 1

FS = 240
LIMIT = 3.0  # Millivolts.
WEIGHTS = ("last_11597276.ckpt",)


def prepare(signal: np.ndarray, fs: float) -> np.ndarray:
    """Prepare a recording as input of the network.

    Args:
        signal: Signal in mV, (n, 12); it is clipped at 3 mV, but neither filtered nor scaled.
        fs: Sampling rate in Hz.

    Returns:
        Parts, (P, 12, 2400); records shorter than 10 s are followed by zeros.

    Raises:
        MissingExtra: The package resampy is not installed.
    """
    return windows(windowed_sinc(np.clip(signal, -LIMIT, LIMIT), fs, FS), SAMPLES).transpose(0, 2, 1)


def load(card: ModelCard, source: ModelFiles, *, pooling: str, variant: str) -> SignalEncoder:
    """Load ECG-CPC from its Lightning file, reading only the tensors.

    Raises:
        BadModel: Weights are missing, cannot be read safely, or do not match the network exactly.
        MissingExtra: The package resampy is not installed.
    """
    weights = source.weights(WEIGHTS)
    network = loaded(EcgCpc, published_keys(read_weights(weights)), card.id)
    return SignalEncoder(
        **described(card, source, weights, pooling, variant),
        network=TokenExtractor(network, EcgCpc.tokens),
        prepare=prepare,
        raw_crops=RawCrops(2.5, FS),
    )
