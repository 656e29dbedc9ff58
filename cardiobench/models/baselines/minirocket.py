"""MiniRocket on 12 leads: fixed convolutions without training.

A. Dempster, D. F. Schmidt, G. I. Webb: MiniRocket: A Very Fast (Almost) Deterministic Transform for Time Series
Classification, KDD 2021. The 84 kernels of length 9, dilations, padding and pooling (the proportion of positive values,
PPV) follow the paper; the random sets of leads follow its multivariate form. Unlike in the paper, biases do not come
from training data, which a frozen encoder must not see, but from generated ECG-like signals with a fixed seed.
"""

from typing import TYPE_CHECKING

import numpy as np

from cardiobench.data.media.resample import resample
from cardiobench.data.media.types import LEADS, Ecg
from cardiobench.models.cards import ModelCard
from cardiobench.models.signal import checked, fit_length, standardise

if TYPE_CHECKING:
    import torch

COMPONENT = "adapter minirocket"
VERSION = 1

FS = 100
SAMPLES = 1000


class MiniRocket:
    """Encoder with the 9,996 MiniRocket features of a 12-lead ECG.

    PyTorch is imported and kernels are made for the first recording, not for stored embeddings.
    """

    revision = "5781a8d21e9a"  # Digest of the kernels, which a test compares.
    modalities = ("ecg",)
    dim = 9996
    pooling = "mean"
    sampling = None
    warnings = ()

    def __init__(self, card: ModelCard):
        self.name = card.id
        self.preprocessing = card.preprocessing

    def transform(self, recording: Ecg) -> "torch.Tensor":
        """Resample a recording to 100 Hz, standardise it and fit it to 10 s. Returns an array (1, 12, 1000)."""
        import torch

        signal = resample(checked(recording), recording.fs, FS)
        scaled = fit_length(standardise(signal), SAMPLES)
        return torch.from_numpy(np.ascontiguousarray(scaled.T, dtype=np.float32))[None]

    def encode(self, parts: "torch.Tensor") -> "torch.Tensor":
        """Encode recordings (N, 12, 1000) as features (N, 9996) in [0, 1]."""
        from cardiobench.models.baselines.minirocket_kernels import ppv_features

        if parts.shape[1:] != (len(LEADS), SAMPLES):
            raise ValueError(f"MiniRocket takes (N, {len(LEADS)}, {SAMPLES}), got {tuple(parts.shape)}")
        return ppv_features(parts, FS)

    def to(self, device: "torch.device") -> "MiniRocket":
        """Return itself; kernels follow the device of the recordings."""
        return self
