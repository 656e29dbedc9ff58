"""Tiny network and synthetic ECGs for tests of `finetune`."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from cardiobench.data.media.types import Ecg
from cardiobench.embeddings.vectors import Embeddings
from cardiobench.models.custom import BaseEncoder
from tests.protocols.conftest import BINARY, task_data

SPLIT = ["train"] * 20 + ["validation"] * 10 + ["test"] * 10


class Block(torch.nn.Module):
    """A layer with dropout, attention and batch normalisation."""

    def __init__(self, width):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(width, 2, batch_first=True)
        self.linear, self.norm, self.dropout = (
            torch.nn.Linear(width, width),
            torch.nn.BatchNorm1d(width),
            torch.nn.Dropout(0.2),
        )

    def forward(self, tokens):
        tokens = tokens + self.attention(tokens, tokens, tokens, need_weights=False)[0]
        return tokens + self.dropout(torch.relu(self.linear(self.norm(tokens.mT).mT)))


class Network(torch.nn.Module):
    """Network with a stem, three blocks, a norm after them, and a head that the embedding does not use."""

    def __init__(self, width=8):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)  # Registered before the blocks, used after them.
        self.stem = torch.nn.Conv1d(12, width, 5, 5)
        self.blocks = torch.nn.ModuleList([Block(width) for _ in range(3)])
        self.unused = torch.nn.Linear(width, 5)

    def forward(self, parts):
        tokens = self.stem(parts).mT
        for block in self.blocks:
            tokens = block(tokens)
        return self.norm(tokens).mean(1)


class Tiny(BaseEncoder):
    """Return windows of one second at 100 Hz."""

    name = "lab/tiny"
    sampling_rate = 100.0
    sampling = None

    def __init__(self, seed=0):
        torch.manual_seed(seed)
        self.network = Network().eval()

    def transform(self, recording: Ecg) -> torch.Tensor:
        windows = recording.signal[: len(recording.signal) // 100 * 100].reshape(-1, 100, 12)
        return torch.from_numpy(windows.copy()).mT

    @torch.no_grad()
    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        return self.network(parts)


def signals(seed=0):
    """Return 40 records of 3 s; one lead oscillates in those of the positive class."""
    rng = np.random.default_rng(seed)
    positive = np.arange(40) % 2 == 1
    waves = 0.1 * rng.normal(size=(40, 300, 12))
    waves[positive, :, 6] += np.sin(np.arange(300) / 3)
    return waves.astype(np.float32), np.where(positive, "yes", "no")


def data_of(waves, labels, encoder, task=BINARY, split=SPLIT):
    vectors = [encoder.encode(encoder.transform(Ecg(wave, 100.0))).numpy() for wave in waves]
    data = task_data(task, vectors, labels, split)
    assert isinstance(data.embeddings, Embeddings)
    parts = {f"r{number}": encoder.transform(Ecg(wave, 100.0)) for number, wave in enumerate(waves)}
    return replace(data, parts_of=parts.__getitem__)


@pytest.fixture
def encoder():
    return Tiny()


@pytest.fixture
def data(encoder):
    return data_of(*signals(), encoder)
