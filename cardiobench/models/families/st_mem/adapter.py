"""ST-MEM: crops of 9 s at 250 Hz, filtered and standardised separately, with any leads identified by name.

Preprocessing: `util/transforms.py` and `configs/downstream/st_mem.yaml` of vuno/ST-MEM (commit 311c644).
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
from scipy.signal import butter, resample, sosfiltfilt

from cardiobench.data.media.types import LEADS
from cardiobench.models.blocks.raw_crops import RawCrops
from cardiobench.models.blocks.signal_encoder import SignalEncoder, TokenExtractor, described, loaded
from cardiobench.models.cards import ModelCard
from cardiobench.models.families.st_mem.network import SAMPLES, StMem, published_keys
from cardiobench.models.files import ModelFiles
from cardiobench.models.weights import read_weights

COMPONENT = "adapter st-mem"
VERSION = 1

FS = 250
BAND = (0.67, 40.0)  # Hz
WEIGHTS = ("st_mem_vit_base_encoder.pth", "st_mem_vit_base_full.pth")


def resampled(signal: np.ndarray, fs: float) -> np.ndarray:
    """Resample a signal (n, leads) to 250 Hz by its Fourier series."""
    return signal if fs == FS else resample(signal, int(len(signal) * FS / fs), axis=0)


def filtered(signal: np.ndarray) -> np.ndarray:
    """Filter a signal (n, leads) at 250 Hz forwards and backwards by Butterworth filters of order 5, 0.67 to 40 Hz."""
    for edge, kind in zip(BAND, ("highpass", "lowpass"), strict=True):
        signal = sosfiltfilt(butter(5, edge, kind, fs=FS, output="sos"), signal, axis=0)
    return signal


def standardised(signal: np.ndarray) -> np.ndarray:
    """Standardise a signal (n, leads) by the mean and standard deviation over all values; a constant becomes 0."""
    scale = signal.std()
    return (signal - signal.mean()) / scale if scale else np.zeros_like(signal)


def starts(samples: int, variant: str) -> Sequence[int]:
    """Return the start samples of the crops of a record: three or four over the record, or only the middle one."""
    surplus = max(samples - SAMPLES, 0)
    if variant == "center":
        return [surplus // 2]
    return range(0, surplus + 1, surplus // 2) if surplus > 1 else [0]


def prepare(signal: np.ndarray, fs: float, variant: str = "crops", leads: Sequence[str] = LEADS) -> np.ndarray:
    """Prepare a recording as input of the network.

    Args:
        signal: Signal in mV, (n, 12).
        fs: Sampling rate in Hz.
        variant: "crops": crops from the first to the last 9 s, whose vectors are averaged later; "center": the middle 9 s.
        leads: Names of the leads to use; other leads do not affect the scale.

    Returns:
        Parts, (P, len(leads), 2250); records shorter than 9 s are followed by zeros.
    """
    at_250 = resampled(signal[:, [LEADS.index(lead) for lead in leads]], fs)
    crops = [standardised(filtered(at_250[start : start + SAMPLES])) for start in starts(len(at_250), variant)]
    return np.stack([np.pad(crop, ((0, SAMPLES - len(crop)), (0, 0))) for crop in crops]).transpose(0, 2, 1)


def prepare_few(
    signal: np.ndarray, fs: float, variant: str = "crops", *, present: Sequence[int] = range(len(LEADS))
) -> np.ndarray:
    """Prepare a recording, (P, 12, 2250), with zeros for leads whose columns are not in `present`."""
    some = prepare(signal, fs, variant, [LEADS[column] for column in present])
    parts = np.zeros((len(some), len(LEADS), SAMPLES))
    parts[:, present] = some
    return parts


@dataclass(eq=False, kw_only=True)
class StMemEncoder(SignalEncoder):
    """The encoder, which also works with fewer leads."""

    network: TokenExtractor
    prepare: partial[np.ndarray]
    raw_crops: RawCrops

    def with_leads(self, leads: Sequence[str]) -> Self:
        """Return the encoder for the given leads, each with the embedding of its name."""
        fewer, places = copy(self), [LEADS.index(lead) for lead in leads]
        fewer.leads = tuple(leads)
        fewer.network = TokenExtractor(self.network.network, partial(self.network.read, leads=places))
        fewer.prepare = partial(self.prepare, leads=leads)
        fewer.raw_crops = replace(self.raw_crops, leads=tuple(leads))
        fewer.preprocessing = {**self.preprocessing, "leads": " ".join(leads)}
        return fewer


def load(card: ModelCard, source: ModelFiles, *, pooling: str, variant: str) -> StMemEncoder:
    """Load the encoder from a checkpoint of the authors; `mean` pooling ends with the last norm, as in their code.

    Raises:
        BadModel: Weights are missing, cannot be read safely, or do not match the network exactly.
    """
    weights = source.weights(WEIGHTS)
    network = loaded(StMem, published_keys(read_weights(weights)), card.id)
    return StMemEncoder(
        **described(card, source, weights, pooling, variant),
        network=TokenExtractor(network, StMem.representation if pooling == "mean" else StMem.tokens),
        prepare=partial(prepare, variant=variant),
        prepare_few=partial(prepare_few, variant=variant),
        raw_crops=RawCrops(2.4, FS),
    )
