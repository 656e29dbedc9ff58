"""ECG_JEPA of Kim: 8 leads in mV at 250 Hz in windows of 10 s, not scaled.

Preprocessing: `ecg_data.py` of the repository (commit 91902d5).
"""

import numpy as np
from scipy.signal import resample

from cardiobench.data.media.types import LEADS
from cardiobench.models.blocks.signal_encoder import SignalEncoder, TokenExtractor, described, loaded
from cardiobench.models.cards import ModelCard
from cardiobench.models.families.ecg_jepa_kim.network import EcgJepaKim
from cardiobench.models.files import ModelFiles
from cardiobench.models.signal import windows
from cardiobench.models.weights import read_weights

COMPONENT = "adapter ecg-jepa-kim"
VERSION = 1

FS = 500
WINDOW = 10 * FS
SAMPLES = 2500
INDEPENDENT = ("I", "II", "V1", "V2", "V3", "V4", "V5", "V6")
CHOSEN = [LEADS.index(lead) for lead in INDEPENDENT]
WEIGHTS = ("multiblock_epoch100.pth", "random_epoch100.pth")


def prepare(signal: np.ndarray, fs: float) -> np.ndarray:
    """Prepare a recording as input of the network: Fourier-resampled to 500 Hz, then each window to 250 Hz.

    Args:
        signal: Signal in mV, (n, 12), neither filtered nor scaled.
        fs: Sampling rate in Hz.

    Returns:
        Parts, (P, 8, 2500); records shorter than 10 s are followed by zeros.
    """
    at_500 = signal if fs == FS else resample(signal, int(FS / fs * len(signal)), axis=0)
    return resample(windows(at_500[:, CHOSEN], WINDOW), SAMPLES, axis=1).transpose(0, 2, 1)


def load(card: ModelCard, source: ModelFiles, *, pooling: str, variant: str) -> SignalEncoder:
    """Load the encoder from a checkpoint of the authors; its tokens are ordered by lead.

    Raises:
        BadModel: Weights are missing, cannot be read safely, or do not match the network exactly.
    """
    weights = source.weights(WEIGHTS)
    network = loaded(EcgJepaKim, read_weights(weights), card.id)
    return SignalEncoder(
        **described(card, source, weights, pooling, variant),
        network=TokenExtractor(network, EcgJepaKim.tokens),
        prepare=prepare,
        leads=INDEPENDENT,
    )
