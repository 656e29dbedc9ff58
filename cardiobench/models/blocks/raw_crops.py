"""Raw crops of a record: cut at the original rate and resampled separately, neither filtered nor scaled."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cardiobench.data.media.types import LEADS
from cardiobench.models.blocks.windowed_sinc import windowed_sinc
from cardiobench.models.signal import windows


@dataclass(frozen=True)
class RawCrops:
    """Preparation of a record as consecutive crops, as in arXiv:2509.25095.

    Attributes:
        seconds: Length of a crop.
        rate: Rate of the network in Hz.
        leads: Names of the leads to take.
    """

    seconds: float
    rate: float
    leads: Sequence[str] = LEADS

    def __call__(self, signal: np.ndarray, fs: float) -> np.ndarray:
        """Return the crops (P, leads, seconds * rate) of a signal (n, 12).

        A record shorter than a crop is followed by zeros.

        Raises:
            MissingExtra: The package resampy is not installed.
        """
        taken, length = signal[:, [LEADS.index(lead) for lead in self.leads]], int(self.seconds * fs)
        pieces = windows(taken, length) if len(taken) >= length else [taken]
        samples = round(self.seconds * self.rate)
        crops = [windows(windowed_sinc(piece, fs, self.rate), samples)[0] for piece in pieces]
        return np.stack(crops).transpose(0, 2, 1)
