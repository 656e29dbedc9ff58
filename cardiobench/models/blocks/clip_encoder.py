"""Shared parts of the video models of echocardiography."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from cardiobench.core.errors import BadModel
from cardiobench.data.media.types import FrameSampling
from cardiobench.models.cards import ModelCard
from cardiobench.models.network_encoder import NetworkEncoder

COMPONENT = "encoder clip"
VERSION = 1


@dataclass(eq=False, kw_only=True)
class ClipEncoder(NetworkEncoder):
    """A frozen network for whole clips; see `cardiobench.models.base.Encoder` for common attributes.

    Attributes:
        network: Function from prepared clips, uint8 (N, ...), to vectors (N, dim), which also normalises them on the
            device.
        no_text_reason: Reason why the model cannot be used with prompts.
    """

    name: str
    revision: str
    network: torch.nn.Module
    dim: int
    sampling: FrameSampling | None
    preprocessing: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    no_text_reason: str = "it has no text tower"
    pooling: Literal["mean", "mean_l2"] = "mean"
    modalities: tuple[str, ...] = ("echo",)

    def __post_init__(self):
        self.network.float().eval().requires_grad_(False)


# Factor of cosines if a release lacks the learned one: the initial value in the training of CLIP.
CLIP_SCALE = 1 / 0.07


def no_scale(what: str) -> str:
    """Return the warning for a model released without its learned temperature."""
    return (
        f"{what} holds no learned temperature: zero-shot probabilities use CLIP's first value, 1/0.07; it changes how sure "
        f"they are and not which class is the likeliest"
    )


def refuse_unknown(card: ModelCard, what: str, name: str, known: tuple[str, ...]) -> None:
    """Raise `BadModel` if an adapter does not have a pooling or variant."""
    if name not in known:
        raise BadModel(f"{card.id} has no {what} '{name}'. It has: {', '.join(known)}.")
