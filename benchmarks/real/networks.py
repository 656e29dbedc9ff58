"""The published networks in PyTorch, as models of CardioBench with their own heads.

The keys of the parameters are those of the published checkpoints, which are loaded without any other key.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from scipy.signal import butter, filtfilt
from torch import nn

from benchmarks.real.sources import ECG_SCOPE, INCEPTION, TRUST_ECG, Source
from cardiobench import BaseEncoder
from cardiobench.data import catalog
from cardiobench.data.media import Ecg

TASK = "ptb_xl_sample/super"
ORDER = ("NORM", "MI", "STTC", "CD", "HYP")
SAMPLES = 1000
TINY = 1e-8


class WithHead(BaseEncoder):
    """A network of 10 s at 100 Hz whose last layers predict the five diagnostic classes of PTB-XL.

    Attributes:
        source: Repository of the checkpoint.
        order: Classes in the order of the head.
    """

    sampling_rate = 100.0
    native = ("super",)
    source: ClassVar[Source]
    order: ClassVar[tuple[str, ...]] = ORDER

    def __init__(self, clone: Path, network: nn.Module, head: nn.Module):
        (name,) = self.source.files
        state = torch.load(io.BytesIO(self.source.read(clone, name)), map_location="cpu", weights_only=True)
        prefix = self.head + "."
        inner = {key: value for key, value in state.items() if not key.startswith(prefix)}
        network.load_state_dict(inner)
        head.load_state_dict({key.removeprefix(prefix): value for key, value in state.items() if key not in inner})
        self.network, self.classifier = network.eval(), head.eval()

    head: ClassVar[str] = "classifier"
    """Prefix of the keys of the head."""

    def prepare(self, signal: np.ndarray) -> np.ndarray:
        """Normalise a signal (1000, 12) in mV."""
        raise NotImplementedError

    def transform(self, recording: Ecg) -> torch.Tensor:
        """Return one part, (1, 12, 1000), float32."""
        signal = np.zeros((SAMPLES, 12))
        signal[: len(recording.signal)] = recording.signal[:SAMPLES]
        return torch.from_numpy(np.ascontiguousarray(self.prepare(signal).T, dtype=np.float32))[None]

    @torch.no_grad()
    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, 12, 1000) as the vectors before the head, (N, dim)."""
        return self.network(parts)

    @torch.no_grad()
    def predict_native(self, target: str, units: Sequence[np.ndarray]) -> np.ndarray:
        """Return probabilities of the classes, (n, 5), from the stored vectors of each recording."""
        vectors = torch.from_numpy(np.stack([np.asarray(unit, np.float32).mean(axis=0) for unit in units]))
        device = next(self.classifier.parameters()).device
        answers = torch.sigmoid(self.classifier(vectors.to(device))).double().cpu().numpy()
        return answers[:, [self.order.index(name) for name in catalog.task(TASK).classes]]


class Scope(nn.Module):
    """Three convolutions, each with normalisation and pooling, and the mean over time."""

    def __init__(self) -> None:
        super().__init__()
        for number, (inside, outside, kernel) in enumerate(((12, 32, 7), (32, 64, 5), (64, 128, 3)), 1):
            layers = (
                nn.Conv1d(inside, outside, kernel, padding="same"),
                nn.BatchNorm1d(outside),
                nn.ReLU(),
                nn.MaxPool1d(2),
            )
            self.add_module(f"conv_block{number}", nn.Sequential(*layers))

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        """Encode signals (N, 12, samples) as vectors (N, 128)."""
        for block in self.children():
            signals = block(signals)
        return signals.mean(dim=2)


class EcgScope(WithHead):
    """ECG-Scope: each lead standardised."""

    name = "SaimZafar/ecg-scope"
    source = ECG_SCOPE

    def __init__(self, clone: Path):
        super().__init__(
            clone, Scope(), nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 5))
        )

    def prepare(self, signal: np.ndarray) -> np.ndarray:
        """Standardise each lead."""
        return (signal - signal.mean(axis=0)) / (signal.std(axis=0) + TINY)


class Residual(nn.Module):
    """Two convolutions of width 7 with a shortcut, half as long."""

    def __init__(self, inside: int, outside: int):
        super().__init__()
        self.conv1 = nn.Conv1d(inside, outside, 7, stride=2, padding=3)
        self.bn1 = nn.BatchNorm1d(outside)
        self.conv2 = nn.Conv1d(outside, outside, 7, padding=3)
        self.bn2 = nn.BatchNorm1d(outside)
        self.skip = nn.Sequential(nn.Conv1d(inside, outside, 1, stride=2), nn.BatchNorm1d(outside))

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        """Return signals (N, outside, samples / 2)."""
        new = self.bn2(self.conv2(self.bn1(self.conv1(signals)).relu()))
        return (new + self.skip(signals)).relu()


class Attention(nn.Module):
    """Weighted mean over the axis before the last; the weights are learned from each vector."""

    def __init__(self, width: int):
        super().__init__()
        self.attention = nn.Sequential(nn.Linear(width, width // 2), nn.Tanh(), nn.Linear(width // 2, 1))

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Pool vectors (..., n, width) to (..., width)."""
        return (vectors * self.attention(vectors).softmax(dim=-2)).sum(dim=-2)


class Trust(nn.Module):
    """One encoder for every lead, pooled over time, then over leads."""

    def __init__(self) -> None:
        super().__init__()
        self.lead_encoder = nn.Sequential(Residual(1, 32), Residual(32, 64), Residual(64, 128))
        self.temporal_attention = Attention(128)
        self.lead_attention = Attention(128)

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        """Encode signals (N, 12, samples) as vectors (N, 128)."""
        count, leads, samples = signals.shape
        times = self.lead_encoder(signals.reshape(count * leads, 1, samples)).transpose(1, 2)
        return self.lead_attention(self.temporal_attention(times).reshape(count, leads, -1))


class TrustEcg(WithHead):
    """TrustECG: band of 0.5 to 40 Hz, all leads standardised together."""

    name = "Kaleemullah-Younas/TrustECG"
    source = TRUST_ECG

    def __init__(self, clone: Path):
        head = (nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.3))
        super().__init__(clone, Trust(), nn.Sequential(*head, nn.Linear(64, 5)))

    def prepare(self, signal: np.ndarray) -> np.ndarray:
        """Filter, and standardise the recording."""
        filtered = filtfilt(*butter(2, (0.5, 40), "band", fs=100), signal, axis=0)
        return (filtered - filtered.mean()) / (filtered.std() + TINY)


class InceptionBlock(nn.Module):
    """Convolutions of widths 9, 19 and 39 and a pooled branch side by side, after a narrow layer."""

    def __init__(self, inside: int):
        super().__init__()
        self.bottleneck = nn.Conv1d(inside, 32, 1, bias=False)
        self.convs = nn.ModuleList(nn.Conv1d(32, 32, width, padding="same", bias=False) for width in (9, 19, 39))
        self.maxconv = nn.Sequential(nn.MaxPool1d(3, 1, 1), nn.Conv1d(32, 32, 1, bias=False))
        self.bn = nn.BatchNorm1d(128)

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        """Return signals (N, 128, samples)."""
        narrow = self.bottleneck(signals)
        return self.bn(torch.cat([branch(narrow) for branch in (*self.convs, self.maxconv)], dim=1)).relu()


class Shortcut(nn.Module):
    """A convolution of width 1 with normalisation."""

    def __init__(self, inside: int):
        super().__init__()
        self.conv = nn.Conv1d(inside, 128, 1, bias=False)
        self.bn = nn.BatchNorm1d(128)

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        """Return signals (N, 128, samples)."""
        return self.bn(self.conv(signals))


class Inception(nn.Module):
    """Six blocks with a shortcut over each three, and the mean over time."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(InceptionBlock(12 if number == 0 else 128) for number in range(6))
        self.shortcuts = nn.ModuleDict({"2": Shortcut(12), "5": Shortcut(128)})

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        """Encode signals (N, 12, samples) as vectors (N, 128)."""
        before = signals
        for number, block in enumerate(self.blocks):
            signals = block(signals)
            if str(number) in self.shortcuts:
                before = signals = (signals + self.shortcuts[str(number)](before)).relu()
        return signals.mean(dim=2)


class InceptionTime(WithHead):
    """InceptionTime: the recording standardised, all leads together."""

    name = "EkatAI/InceptionTime"
    source = INCEPTION
    order = ("CD", "HYP", "MI", "NORM", "STTC")
    head = "fc"

    def __init__(self, clone: Path):
        super().__init__(clone, Inception(), nn.Linear(128, 5))

    def prepare(self, signal: np.ndarray) -> np.ndarray:
        """Standardise the recording."""
        return (signal - signal.mean()) / (signal.std(ddof=1) + TINY)


NETWORKS = {"trustecg": TrustEcg, "ecg_scope": EcgScope, "inceptiontime": InceptionTime}
