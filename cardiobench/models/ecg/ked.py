"""ECGFM-KED: the first 10 s of 12 leads in mV at 100 Hz, not scaled.

Preprocessing: `dataset/ecgDataset.py` and `dataset/shaoxing/data_preprocess.py` of the repository (commit e42f1de).
"""

from functools import partial

import numpy as np
from scipy.signal import resample

from cardiobench.data.media.types import LEADS
from cardiobench.models.cards import ModelCard
from cardiobench.models.ecg.encoder import SignalEncoder, TokenExtractor, described, loaded
from cardiobench.models.ecg.ked_queries import QUERIES, load_queries
from cardiobench.models.ecg.raw_crops import RawCrops
from cardiobench.models.files import ModelFiles
from cardiobench.models.nets.xresnet1d import XResNet1d101, published_keys
from cardiobench.models.signal import fit_length
from cardiobench.models.weights import read_part

COMPONENT = "adapter ked"
VERSION = 1

FS = 100
SAMPLES = 10 * FS
WEIGHTS = ("best_valid_all_increase_with_augment_epoch_3.pt",)
ENCODER = "ecg_model"
MIMIC_ORDER = [*range(4), LEADS.index("aVF"), LEADS.index("aVL"), *range(6, 12)]


def prepare(signal: np.ndarray, fs: float, variant: str = "mimic_order") -> np.ndarray:
    """Prepare a recording as input of the network: Fourier-resample the record and take its first 10 s.

    Args:
        signal: Signal in mV, (n, 12), neither filtered nor scaled.
        fs: Sampling rate in Hz.
        variant: "standard_order": aVL before aVF, as in the authors' test sets; any other: aVF before aVL, as in the
            pretraining data.

    Returns:
        Part, (1, 12, 1000); records shorter than 10 s are centred between zeros.
    """
    at_100 = signal if fs == FS else resample(signal, int(FS / fs * len(signal)), axis=0)
    ready = fit_length(at_100[:SAMPLES], SAMPLES)
    return (ready if variant == "standard_order" else ready[:, MIMIC_ORDER]).T[None]


def load(card: ModelCard, source: ModelFiles, *, pooling: str, variant: str) -> SignalEncoder:
    """Load the ECG encoder from the published file; the variant `queries` adds its decoder and text encoder.

    Raises:
        BadModel: Weights are missing, cannot be read safely, or do not match the network exactly.
        NotApplicable: The variant `queries` needs tokens, which are not kept.
    """
    weights = source.weights(WEIGHTS)
    network = loaded(XResNet1d101, published_keys(read_part(weights[0], ENCODER), card.id), card.id)
    fields = {
        **described(card, source, weights, pooling, variant),
        "network": TokenExtractor(network, XResNet1d101.tokens),
        "prepare": partial(prepare, variant=variant),
    }
    if variant == QUERIES:
        return load_queries(card, source, weights[0], fields)
    return SignalEncoder(**fields, raw_crops=RawCrops(10, 500))
