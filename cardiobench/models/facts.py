"""Models without their network: their facts, and the vectors of the texts of a cell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from cardiobench.models.base import Encoder, LoadedModel, TextEncoder

if TYPE_CHECKING:
    import numpy as np

TextVectors = Mapping[tuple[str, ...], "np.ndarray"]
"""Texts of one call of `encode_text` -> their unit vectors (n, dim) in float64."""
NO_TEXTS: TextVectors = MappingProxyType({})


@dataclass(frozen=True)
class EncoderFacts:
    """Attributes of an encoder without its network, sufficient for a cell with stored embeddings."""

    name: str
    revision: str
    modalities: tuple[str, ...]
    dim: int
    pooling: str
    frame_wise: bool
    no_text_reason: str
    given: tuple[str, ...]


@dataclass(frozen=True)
class EncodedTexts(EncoderFacts):
    """Attributes of an encoder with a text tower, and vectors computed by the tower.

    Attributes:
        logit_scale: Factor of cosines before the softmax.
        vectors: Vectors of all texts that a protocol needs.
    """

    logit_scale: float
    vectors: TextVectors

    def encode_text(self, texts: Sequence[str]) -> "np.ndarray":
        """Return the vectors of texts that were encoded together. The array is float64 (n, dim)."""
        return self.vectors[tuple(texts)]


def without_network(model: LoadedModel, texts: TextVectors = NO_TEXTS) -> LoadedModel:
    """Return a model for worker processes, whose encoder consists of its facts and the vectors of some texts.

    The encoding code is left out, because a worker would import PyTorch to receive it.
    """
    encoder = model.encoder
    reason, given = getattr(encoder, "no_text_reason", ""), tuple(getattr(encoder, "given", ()))
    facts = (model.name, model.revision, model.modalities, model.dim, model.pooling, model.frame_wise, reason, given)
    made = (
        EncodedTexts(*facts, encoder.logit_scale, texts)
        if texts and isinstance(encoder, TextEncoder)
        else EncoderFacts(*facts)
    )
    return replace(model, encoder=cast(Encoder, made), code=(), change=None, vectors=None)
