"""MERL: the first 10 s of 12 leads at 500 Hz, scaled to [0, 1] as a whole, with aVF before aVL.

Preprocessing: `finetune/finetune_dataset.py` of cheliu-computation/MERL-ICML2024 (commit 38799b7).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch

from cardiobench.core.errors import NotApplicable
from cardiobench.data.media.resample import resample
from cardiobench.data.media.types import LEADS
from cardiobench.models.blocks.bert_text import Tokens, loaded_text, read_tokenizer
from cardiobench.models.blocks.raw_crops import RawCrops
from cardiobench.models.blocks.signal_encoder import SignalEncoder, TokenExtractor, described, loaded
from cardiobench.models.cards import ModelCard
from cardiobench.models.families.merl import network as merl
from cardiobench.models.families.merl.text_network import MerlText
from cardiobench.models.files import ModelFiles
from cardiobench.models.signal import EVERY, zero_absent
from cardiobench.models.weights import read_weights

COMPONENT = "adapter merl"
VERSION = 1

FS = 500
SAMPLES = 10 * FS
MIMIC_ORDER = [*range(4), LEADS.index("aVF"), LEADS.index("aVL"), *range(6, 12)]
PROMPTS = "prompts"
TOKENIZER = "ncbi/MedCPT-Query-Encoder"
LENGTH = 256
SCALE = 1 / 0.07
"""Inverse temperature of the contrastive loss; the zero-shot scores of the authors are plain cosines."""


def scaled(signal: np.ndarray, present: Sequence[int] | slice = EVERY) -> np.ndarray:
    """Scale a signal (n, leads) to [0, 1] by the minimum and maximum of the available leads; a constant becomes 0."""
    there = signal[:, present]
    low, high = there.min(), there.max()
    return zero_absent((signal - low) / (high - low + 1e-8), present)


def prepare(signal: np.ndarray, fs: float, seconds: float = 10.0, present: Sequence[int] | slice = EVERY) -> np.ndarray:
    """Prepare a recording as input of the network.

    Args:
        signal: Signal in any unit, (n, 12).
        fs: Sampling rate in Hz; rates other than the 500 Hz of the authors are resampled by polyphase filtering.
        seconds: Length that is used, in seconds; the authors use 5 s of CPSC2018.
        present: Columns of the available leads.

    Returns:
        Part, (1, 12, 5000); shorter records are followed by zeros before scaling.
    """
    kept = resample(signal, fs, FS)[: round(seconds * FS)]
    whole = np.pad(kept[:SAMPLES], ((0, max(0, SAMPLES - len(kept))), (0, 0)))
    return scaled(whole, present)[:, MIMIC_ORDER].T[None]


def one_token(network: torch.nn.Module, parts: torch.Tensor) -> torch.Tensor:
    """Return the vector of each part (N, dim) as its only token. The shape is (N, 1, dim)."""
    return network(parts)[:, None]


@dataclass(frozen=True)
class MerlSize:
    """One of the two published encoders.

    Attributes:
        file: Prefix of its file names.
        encoder: Network without the head.
        tokens: Function that returns the tokens of the network.
        authors: Function that returns the authors' vector as a single token, if it is not the mean of the tokens.
        shared: Network with the projection to the text space.
    """

    file: str
    encoder: Callable[[], torch.nn.Module]
    tokens: Callable[[Any, torch.Tensor], torch.Tensor]
    authors: Callable[[Any, torch.Tensor], torch.Tensor] | None
    shared: Callable[[], torch.nn.Module]

    @property
    def whole(self) -> tuple[str, ...]:
        """Accepted names of the file with the whole model."""
        return (f"{self.file}_best_ckpt.pth",)


RESNET18 = MerlSize("res18", merl.MerlResNet18, merl.MerlResNet18.tokens, None, merl.MerlResNet18Shared)
VIT_TINY = MerlSize("vit_tiny", merl.MerlVitTiny, merl.MerlVitTiny.tokens, one_token, merl.MerlVitTinyShared)


@dataclass(eq=False, kw_only=True)
class MerlPrompts(SignalEncoder):
    """The encoder in the text space, with its text tower.

    Attributes:
        text_network: Function from token ids and attention mask (N, L) to vectors (N, 256).
        tokenize: Function from texts to token ids and attention mask.
        logit_scale: Factor of cosines before the softmax.
    """

    text_network: torch.nn.Module
    tokenize: Callable[[Sequence[str]], Tokens]
    logit_scale: float = SCALE

    def __post_init__(self):
        super().__post_init__()
        self.text_network.float().eval().requires_grad_(False)

    @torch.no_grad()
    def encode_text(self, texts: Sequence[str]) -> torch.Tensor:
        """Encode texts, in lower case, as vectors (len(texts), 256), float32, unit length."""
        device = next(self.text_network.parameters()).device
        ids, mask = self.tokenize([text.lower() for text in texts])
        vectors = self.text_network(ids.to(device), mask.to(device))
        return torch.nn.functional.normalize(vectors.float(), dim=-1)

    def to(self, device: torch.device) -> Self:
        """Move both networks and return the encoder."""
        self.text_network.to(device)
        return super().to(device)


def load(size: MerlSize, card: ModelCard, source: ModelFiles, pooling: str, variant: str) -> SignalEncoder:
    """Load an encoder; the variant `prompts` gives vectors in the text space and includes the text tower.

    Raises:
        BadModel: Weights are missing, cannot be read safely or do not match the network exactly, or there is no
            tokenizer.
        NotApplicable: A pooling was given for `prompts`, which has a single vector.
    """
    if variant == PROMPTS:
        return load_prompts(size, card, source, pooling, variant)
    weights = source.weights((f"{size.file}_best_encoder.pth", *size.whole))
    network = loaded(size.encoder, merl.encoder_keys(read_weights(weights)), card.id)
    read = size.authors if pooling == "mean" and size.authors else size.tokens
    return SignalEncoder(
        **described(card, source, weights, pooling, variant),
        network=TokenExtractor(network, read),
        prepare=prepare,
        prepare_few=prepare,
        raw_crops=RawCrops(2.5, FS) if size is RESNET18 else None,
        no_text_reason=f"its text tower needs --variant {PROMPTS}",
    )


def load_prompts(size: MerlSize, card: ModelCard, source: ModelFiles, pooling: str, variant: str) -> MerlPrompts:
    """Load the encoder in the text space and the text tower from the file of the whole model."""
    if pooling != card.poolings[0]:
        raise NotApplicable(
            f"{card.id} has a single vector per record in the text space. Leave --pooling {pooling} or "
            f"--variant {PROMPTS} out."
        )
    weights = source.weights(size.whole)
    state = read_weights(weights)
    network = loaded(size.shared, merl.shared_keys(state), card.id)
    text = {name: tensor for name, tensor in state.items() if name.startswith(("lm_model.", "proj_t."))}
    text_network = loaded_text(MerlText, text, f"the text tower of {card.id}")
    words = text_network.lm_model.config.vocab_size
    tokenize, facts = read_tokenizer(source, card.id, TOKENIZER, size=words, length=LENGTH)
    fields: Mapping[str, Any] = described(card, source, weights, pooling, variant)
    return MerlPrompts(
        **{**fields, "preprocessing": {**fields["preprocessing"], **facts}},
        network=TokenExtractor(network, one_token),
        prepare=prepare,
        prepare_few=prepare,
        text_network=text_network,
        tokenize=tokenize,
    )


def load_resnet18(card: ModelCard, source: ModelFiles, *, pooling: str, variant: str) -> SignalEncoder:
    """Load MERL with its ResNet-18; see `load`."""
    return load(RESNET18, card, source, pooling, variant)


def load_vit_tiny(card: ModelCard, source: ModelFiles, *, pooling: str, variant: str) -> SignalEncoder:
    """Load MERL with its small vision transformer; see `load`."""
    return load(VIT_TINY, card, source, pooling, variant)
