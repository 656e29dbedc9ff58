"""Test repeated encoding: stored recordings detect a changed model, and new recordings detect a nondeterministic one."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from cardiobench.core.errors import BadMedia, BadModel
from cardiobench.embeddings.repeat import check_repeatable, drift
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.base import LoadedModel

CPU = torch.device("cpu")
WEIGHTS = torch.linspace(-1, 1, 12 * 8).reshape(12, 8)


class Source:
    """Six recordings; the first is unreadable."""

    frame = pd.DataFrame({"id": list("abcdef"), "fingerprint": ["1"] * 6})

    def recording(self, number, sampling=None):
        if not number:
            raise BadMedia("a is damaged")
        return np.random.default_rng(number).normal(size=(3, 12)).astype(np.float32)


def model(network, transform=torch.from_numpy, **settings) -> LoadedModel:
    encoder = SimpleNamespace(name="lab/mine", modalities=("ecg",), sampling=None, transform=transform, encode=network)
    return LoadedModel(encoder, "given", {}, **settings)


def linear(parts):
    return parts @ WEIGHTS


def refused(network, **more) -> str:
    with pytest.raises(BadModel) as refusal:
        check_repeatable(model(network, **more), Source(), range(6), CPU)
    return str(refusal.value)


def training(*layers):
    return torch.nn.Sequential(torch.nn.Linear(12, 8), *layers).train()


@pytest.mark.parametrize(
    "network",
    [
        linear,
        training(torch.nn.LayerNorm(8), torch.nn.Dropout(0.0)),
        training(torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(8)).eval(),
    ],
)
def test_deterministic_model_passes(network):
    check_repeatable(model(network), Source(), range(6), CPU)


class DropPath(torch.nn.Module):
    """Model that changes few recordings, so that four encodings are likely to agree."""

    drop_prob = 0.001

    def forward(self, x):
        return x


@pytest.mark.parametrize(
    ("layer", "name"),
    [
        (torch.nn.Dropout(0.1), "Dropout"),
        (torch.nn.BatchNorm1d(8), "BatchNorm1d"),
        (torch.nn.BatchNorm1d(8, affine=False), "BatchNorm1d"),
        (DropPath(), "DropPath"),
        (torch.nn.AlphaDropout(0.2), "AlphaDropout"),
        (torch.nn.TransformerEncoderLayer(8, 2, 8), "Dropout, MultiheadAttention"),
    ],
)
def test_training_mode_is_reported_in_one_message(layer, name):
    said = refused(training(layer))
    assert said.startswith(f"lab/mine is in training mode: {name} changed its output") and "eval()" in said


def test_training_mode_with_single_part():
    said = refused(training(torch.nn.BatchNorm1d(8)), transform=lambda array: torch.from_numpy(array[:1]))
    assert "training mode: BatchNorm1d" in said


def functional(parts):
    return torch.nn.functional.dropout(parts, 0.1)


def of_the_batch(parts):
    return parts - parts.mean(dim=0)


def noisy(parts):
    return parts + 0.01 * torch.randn_like(parts)


@pytest.mark.parametrize("network", [functional, of_the_batch, noisy])
def test_nondeterministic_model_is_reported_in_one_message(network):
    said = refused(network)
    assert "gives different vectors when a recording is encoded again" in said and "fixed seed" in said


def test_random_preprocessing_is_detected():
    generator = np.random.default_rng(0)
    assert "encoded again" in refused(linear, transform=lambda array: torch.from_numpy(array[generator.permutation(3)]))


def test_rounding_is_not_a_difference():
    def rounded(size):
        return lambda parts: linear(parts) * (1 + size * torch.rand(len(parts), 1))

    check_repeatable(model(rounded(1e-5)), Source(), range(6), CPU)
    assert refused(rounded(1e-2))
    check_repeatable(model(rounded(1e-3), precision="bf16"), Source(), range(6), CPU)


@pytest.fixture
def store(tmp_path):
    kept = EmbeddingStore(tmp_path, "lab/mine", "toy", {})
    for number in range(1, 6):
        vectors = linear(torch.from_numpy(Source().recording(number))).numpy()
        kept.append([Source.frame["id"][number]], ["1"], [vectors])
    return kept


def test_stored_vectors_are_compared_with_new_ones(store):
    assert drift(model(linear), Source(), store, 2, CPU) is None
    found = drift(model(lambda parts: linear(parts) * 1.5), Source(), store, 2, CPU)
    assert found.id in "bf" and found.difference > 0.5


def test_other_part_or_value_count_is_a_difference(store):
    assert drift(model(lambda parts: linear(parts)[:, :4]), Source(), store, 1, CPU).difference == np.inf


def test_change_in_a_single_recording_is_detected(store):
    """The first stored recording is unchanged; only the last one differs."""
    last = torch.from_numpy(Source().recording(5))

    def changed(parts):
        return linear(parts) + (parts.shape == last.shape and bool((parts == last).all()))

    assert drift(model(changed), Source(), store, 2, CPU).id == "f"


def test_stores_without_readable_recordings_are_not_checked(store, tmp_path):
    empty = EmbeddingStore(tmp_path / "other", "lab/mine", "toy", {})
    assert drift(model(noisy), Source(), empty, 2, CPU) is None
    gone = SimpleNamespace(frame=Source.frame.assign(fingerprint="2"), recording=Source().recording)
    assert drift(model(noisy), gone, store, 2, CPU) is None


def test_half_precision_tokens_are_compared_as_they_are_stored(tmp_path):
    kept = EmbeddingStore(tmp_path, "lab/mine", "toy", {"dtype": "float16"})
    vectors = linear(torch.from_numpy(Source().recording(1))).numpy()
    kept.append(["b"], ["1"], [vectors])
    assert drift(model(linear), Source(), kept, 2, CPU) is None
    assert drift(model(lambda parts: linear(parts) * 1.1), Source(), kept, 2, CPU)
