"""A model without its network: its facts, and the vectors of the texts of a cell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from cardiobench.models.base import Encoder, LoadedModel, TextEncoder

if TYPE_CHECKING:
    import numpy as np

TextVectors = Mapping[tuple[str, ...], "np.ndarray"]
"""Texts of one call of `encode_text` -> their unit vectors, float64 (n, dim)."""
NO_TEXTS: TextVectors = MappingProxyType({})


@dataclass(frozen=True)
class EncoderFacts:
    """The attributes of an encoder without its network: all that a cell needs once the embeddings are stored."""

    name: str
    revision: str
    modalities: tuple[str, ...]
    dim: int
    pooling: str
    frame_wise: bool
    no_text_reason: str


@dataclass(frozen=True)
class EncodedTexts(EncoderFacts):
    """The facts of an encoder with a text tower, and vectors that the tower has made.

    Attributes:
        logit_scale: Factor on cosines before the softmax.
        vectors: Vectors of all texts that a protocol asks for.
    """

    logit_scale: float
    vectors: TextVectors

    def encode_text(self, texts: Sequence[str]) -> "np.ndarray":
        """Return the vectors of texts that were encoded together, float64 (n, dim)."""
        return self.vectors[tuple(texts)]


def without_network(model: LoadedModel, texts: TextVectors = NO_TEXTS) -> LoadedModel:
    """Return a model whose encoder is its facts and the vectors of some texts, to be sent to workers.

    The code that encodes recordings stays here: to receive it, a worker would import PyTorch.
    """
    encoder = model.encoder
    reason = getattr(encoder, "no_text_reason", "")
    facts = (model.name, model.revision, model.modalities, model.dim, model.pooling, model.frame_wise, reason)
    made = (
        EncodedTexts(*facts, encoder.logit_scale, texts)
        if texts and isinstance(encoder, TextEncoder)
        else EncoderFacts(*facts)
    )
    return replace(model, encoder=cast(Encoder, made), code=(), change=None)
