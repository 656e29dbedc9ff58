"""xECG: 12 leads in mV at 100 Hz in windows of 10 s, neither filtered nor scaled.

Preprocessing: the model card on the Hub, and `pretraining_dataset.py` with `pretrain_run_config.yaml` of dlaskalab/bench-xecg
(commit 38cebe1).
"""

import numpy as np
from scipy.signal import resample

from cardiobench.models.blocks.signal_encoder import SignalEncoder, TokenExtractor, described, loaded
from cardiobench.models.cards import ModelCard
from cardiobench.models.families.xecg.network import XEcg, published_keys
from cardiobench.models.files import ModelFiles
from cardiobench.models.signal import windows
from cardiobench.models.weights import read_weights

COMPONENT = "adapter xecg"
VERSION = 1

FS = 100
SAMPLES = 10 * FS
WEIGHTS = ("model.safetensors",)


def prepare(signal: np.ndarray, fs: float) -> np.ndarray:
    """Prepare a recording as input of the network.

    Args:
        signal: Signal in mV, (n, 12); a lead that the recording lacks is 0 and stays 0.
        fs: Sampling rate in Hz.

    Returns:
        Parts, (P, 12, 1000); records shorter than 10 s are followed by zeros.
    """
    at_100 = signal if fs == FS else resample(signal, round(len(signal) * FS / fs), axis=0)
    return windows(at_100, SAMPLES).transpose(0, 2, 1)


def load(card: ModelCard, source: ModelFiles, *, pooling: str, variant: str) -> SignalEncoder:
    """Load xECG from its safetensors; `mean` pooling leaves out padding, as in the published code.

    Raises:
        BadModel: Weights are missing, cannot be read safely, or do not match the network exactly.
    """
    weights = source.weights(WEIGHTS)
    network = loaded(XEcg, published_keys(read_weights(weights)), card.id)
    return SignalEncoder(
        **described(card, source, weights, pooling, variant),
        network=TokenExtractor(network, XEcg.representation if pooling == "mean" else XEcg.tokens),
        prepare=prepare,
    )
