"""openecg codec v6: four leads at 500 Hz in windows of 10 s, each lead replaced by the ranks of its samples.

Preprocessing: `LayeredPredictor` and `rank_normalize` of the packages openecg 0.11.0 and opendsp 0.1.0.
"""

import numpy as np
import torch
from scipy.stats import rankdata

from cardiobench.data.media.resample import resample
from cardiobench.data.media.types import LEADS
from cardiobench.models.blocks.signal_encoder import SignalEncoder, TokenExtractor, described, loaded
from cardiobench.models.cards import ModelCard
from cardiobench.models.families.openecg.network import OpenEcgCodec, published_keys
from cardiobench.models.files import ModelFiles
from cardiobench.models.signal import windows
from cardiobench.models.weights import read_part, weights_digest

COMPONENT = "adapter openecg"
VERSION = 1

FS = 500
SAMPLES = 10 * FS
CHOSEN = ("I", "II", "V1", "V5")
"""Leads whose vectors stand side by side; the network itself reads a single lead."""
WEIGHTS = ("codec_v6.pt",)


def ranks(signal: np.ndarray) -> np.ndarray:
    """Replace the samples of each lead by their ranks, scaled to -1 to 1; a constant lead becomes 0.

    Args:
        signal: Signal, (n, leads), rounded to float32 as by the package; equal samples have their mean rank.
    """
    return 2 * (rankdata(signal.astype(np.float32), axis=0) - 1) / (len(signal) - 1) - 1


def prepare(signal: np.ndarray, fs: float) -> np.ndarray:
    """Prepare a recording as input of the network.

    Args:
        signal: Signal in mV, (n, 12); a lead that the recording lacks is 0 and stays 0.
        fs: Sampling rate in Hz.

    Returns:
        Parts, (P, 4, 5000); records shorter than 10 s are followed by zeros.
    """
    at_500 = resample(signal[:, [LEADS.index(lead) for lead in CHOSEN]], fs, FS)
    if len(at_500) < SAMPLES:
        parts = windows(ranks(at_500), SAMPLES)
    else:
        parts = np.stack([ranks(window) for window in windows(at_500, SAMPLES)])
    return parts.transpose(0, 2, 1)


def load(card: ModelCard, source: ModelFiles, *, pooling: str, variant: str) -> SignalEncoder:
    """Load the codec from the checkpoint of the package.

    Raises:
        BadModel: Weights are missing, cannot be read safely, or do not match the network exactly.
    """
    weights = source.weights(WEIGHTS)
    network = loaded(OpenEcgCodec, published_keys(read_part(weights[0], "model_state")), card.id)
    return SignalEncoder(
        **described(card, source, weights, pooling, variant),
        network=TokenExtractor(network, OpenEcgCodec.side_by_side),
        prepare=prepare,
        leads=CHOSEN,
    )


def untrained(card: ModelCard, *, pooling: str, variant: str) -> SignalEncoder:
    """Build the same network with random weights; the variant `seed_N` is the seed of PyTorch's default initialisation."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(variant.removeprefix("seed_")))
        network = OpenEcgCodec()
    return SignalEncoder(
        name=card.id,
        revision=weights_digest(network),
        network=TokenExtractor(network, OpenEcgCodec.side_by_side),
        prepare=prepare,
        token_pooling=pooling,
        preprocessing={**card.preprocessing, "pooling": pooling, "variant": variant},
        leads=CHOSEN,
    )
