"""A randomly initialised xresnet1d101: the baseline for an untrained ECG architecture."""

from functools import partial

import torch
from torch import nn

from cardiobench.models.blocks.signal_encoder import SignalEncoder, TokenExtractor
from cardiobench.models.blocks.ten_seconds import prepare
from cardiobench.models.blocks.xresnet1d import XResBlock, XResNet1d101
from cardiobench.models.cards import ModelCard
from cardiobench.models.weights import weights_digest

COMPONENT = "adapter random-xresnet1d101"
VERSION = 1

SEED = 0


def random_xresnet1d101(seed: int = SEED) -> XResNet1d101:
    """Build an xresnet1d101 with seeded random weights, initialised as in its published code.

    Convolutions use the normal initialisation of He et al. (arXiv:1502.01852). The last batch norm of every bottleneck
    has gain 0, so each bottleneck starts as its identity path. The global random state is not changed.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = XResNet1d101()
        for module in network.modules():
            if isinstance(module, nn.Conv1d):
                nn.init.kaiming_normal_(module.weight)
            elif isinstance(module, XResBlock):
                nn.init.zeros_(module.get_parameter("convs.2.1.weight"))
    return network


def load(card: ModelCard, *, pooling: str = "mean") -> SignalEncoder:
    """Build the encoder; pooling `tokens` keeps its 32 tokens."""
    network = random_xresnet1d101()
    return SignalEncoder(
        name=card.id,
        revision=weights_digest(network),
        network=TokenExtractor(network, XResNet1d101.tokens),
        prepare=partial(prepare, variant="standard_order"),
        token_pooling=pooling,
        preprocessing=card.preprocessing,
    )
