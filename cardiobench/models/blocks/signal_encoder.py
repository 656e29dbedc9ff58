"""Common encoder of ECG networks that turn pieces of a record into tokens."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeVar

import numpy as np
import torch

from cardiobench.core.errors import BadMedia, BadModel
from cardiobench.data.media.types import LEADS, Ecg, FrameSampling
from cardiobench.models.blocks.raw_crops import RawCrops
from cardiobench.models.cards import ModelCard
from cardiobench.models.files import ModelFiles
from cardiobench.models.pooling import pool
from cardiobench.models.signal import checked
from cardiobench.models.weights import load_exactly

COMPONENT = "encoder ecg"
VERSION = 1

SHORTEST = 1.0  # Minimum length in seconds, because filters need some time to settle.

Network = TypeVar("Network", bound=torch.nn.Module)
Prepare = Callable[[np.ndarray, float], np.ndarray]


@dataclass(eq=False, kw_only=True)
class SignalEncoder:
    """A frozen network for ECG records; see `cardiobench.models.base.Encoder` for common attributes.

    Attributes:
        network: Function from parts (N, ...) to tokens (N, T, dim).
        prepare: Function from a signal (samples, 12) in mV and its rate in Hz to parts (P, ...), P >= 1.
        prepare_few: The same for a signal with missing leads, which are zero: function of signal, rate and `present`,
            the columns of the available leads. Missing leads do not affect the scale of the others and stay zero. None
            if `prepare` already does this.
        token_pooling: Pooling of a part's tokens into its vector, or `tokens` to keep them; see
            `cardiobench.models.pooling`.
        pooling: Pooling of the vectors of a record's parts into one.
        leads: Names of the leads that `prepare` uses.
        raw_crops: Preparation of a record as raw crops, as in arXiv:2509.25095, if used there.
    """

    name: str
    revision: str
    network: torch.nn.Module
    prepare: Prepare
    token_pooling: str
    preprocessing: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    pooling: Literal["mean", "mean_l2"] = "mean"
    prepare_few: Callable[..., np.ndarray] | None = None
    modalities: tuple[str, ...] = ("ecg",)
    sampling: FrameSampling | None = None
    no_text_reason: str = ""
    raw_crops: RawCrops | None = None
    leads: tuple[str, ...] = LEADS
    dim: int = field(init=False)

    def __post_init__(self):
        self.network.eval().requires_grad_(False).float()
        self.dim = probe(self)

    def transform(self, recording: Ecg) -> torch.Tensor:
        """Prepare a recording as parts (P, ...), float32.

        Raises:
            BadMedia: The record is shorter than a second, or is not an ECG of 12 leads with finite values.
        """
        signal = checked(recording)
        if len(signal) < SHORTEST * recording.fs:
            raise BadMedia(
                f"an ECG of {len(signal)} samples at {recording.fs:g} Hz lasts {len(signal) / recording.fs:.2f} s; "
                f"{self.name} needs at least {SHORTEST:g} s. Leave the record out."
            )
        if self.prepare_few is None or set(self.leads) <= set(recording.leads):
            parts = self.prepare(signal.astype(np.float64), recording.fs)
        else:
            present = [column for column, lead in enumerate(LEADS) if lead in recording.leads]
            parts = self.prepare_few(signal.astype(np.float64), recording.fs, present=present)
        return torch.from_numpy(np.ascontiguousarray(parts, dtype=np.float32))

    @torch.no_grad()
    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) on the network's device as float32 vectors (N, dim) or tokens (N, T, dim)."""
        return pool(self.network(parts), self.token_pooling).float()

    def to(self, device: torch.device) -> Self:
        """Move the network and return the encoder."""
        self.network.to(device)
        return self


class TokenExtractor(torch.nn.Module):
    """A network called through its method that returns tokens."""

    def __init__(self, network: torch.nn.Module, read: Callable[..., torch.Tensor]):
        super().__init__()
        self.network, self.read = network, read

    def forward(self, parts: torch.Tensor) -> torch.Tensor:
        """Map parts (N, ...) to tokens (N, T, dim)."""
        return self.read(self.network, parts)


def loaded(build: Callable[[], Network], state: Mapping[str, torch.Tensor], what: str) -> Network:
    """Build a network with exactly the given weights, on the meta device first so that no value can remain random.

    Raises:
        BadModel: Parameters are missing or unexpected, or shapes differ.
    """
    with torch.device("meta"):
        network = build()
    load_exactly(network, state, what)
    return network


def described(card: ModelCard, source: ModelFiles, weights: list, pooling: str, variant: str) -> dict[str, Any]:
    """Return the fields that encoders take from their card; `preprocessing` includes the pooling and the variant."""
    chosen = {"pooling": pooling, "variant": variant} if variant else {"pooling": pooling}
    return {
        "name": card.id,
        "revision": source.revision(weights),
        "token_pooling": pooling,
        "preprocessing": {**card.preprocessing, **chosen},
    }


def probe(encoder: SignalEncoder) -> int:
    """Return the dimension of an encoder's vectors, from encoding ten seconds of random signal.

    Raises:
        BadModel: The network returns values that are not finite, or different vectors on repetition.
    """
    time = np.arange(5000)[:, None] / 500
    signal = np.sin(2 * np.pi * 1.2 * time + np.arange(len(LEADS))) * np.sin(2 * np.pi * 7 * time)
    part = encoder.transform(Ecg(signal.astype(np.float32), 500))[:1]
    vector, again = encoder.encode(part), encoder.encode(part)
    if not torch.isfinite(vector).all():
        raise BadModel(
            f"{encoder.name} returns values that are not finite. Its weights are damaged: copy the model again."
        )
    if not torch.equal(vector, again):
        raise BadModel(
            f"{encoder.name} returns different vectors for the same record. Disable dropout and other random steps."
        )
    return vector.shape[-1]
