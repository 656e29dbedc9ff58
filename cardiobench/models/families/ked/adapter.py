"""ECGFM-KED: the first 10 s of 12 leads in mV at 100 Hz, not scaled.

Preprocessing: `dataset/ecgDataset.py` and `dataset/shaoxing/data_preprocess.py` of the repository (commit e42f1de).
"""

from functools import partial

from cardiobench.models.blocks.raw_crops import RawCrops
from cardiobench.models.blocks.signal_encoder import SignalEncoder, TokenExtractor, described, loaded
from cardiobench.models.blocks.ten_seconds import prepare
from cardiobench.models.blocks.xresnet1d import XResNet1d101, published_keys
from cardiobench.models.cards import ModelCard
from cardiobench.models.families.ked.queries import QUERIES, load_queries
from cardiobench.models.files import ModelFiles
from cardiobench.models.weights import read_part

COMPONENT = "adapter ked"
VERSION = 1

WEIGHTS = ("best_valid_all_increase_with_augment_epoch_3.pt",)
ENCODER = "ecg_model"


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
