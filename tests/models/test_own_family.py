"""Test a family of models outside this package: an adapter, a network and a card."""

import sys

import pytest
import torch
from safetensors.torch import save_file

from cardiobench.core import plugins
from cardiobench.models.detect import detect
from cardiobench.models.files import given_files
from cardiobench.models.load import load_model
from tests.models.encoders import record

NETWORK = """
import torch


class Lab(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lab_stem = torch.nn.Conv1d(12, 4, 500, 500)

    def tokens(self, signal):
        return self.lab_stem(signal).transpose(1, 2)
"""
ADAPTER = """
from cardiobench.models.blocks.signal_encoder import SignalEncoder, TokenExtractor, described, loaded
from cardiobench.models.weights import read_weights
from lab_family.network import Lab


def prepare(signal, fs):
    return signal[:5000].T[None]


def load(card, source, *, pooling, variant) -> SignalEncoder:
    weights = source.weights(("lab.safetensors",))
    network = TokenExtractor(loaded(Lab, read_weights(weights), card.id), Lab.tokens)
    return SignalEncoder(**described(card, source, weights, pooling, variant), network=network, prepare=prepare)
"""
CARD = """---
id: lab/net
revision: null
hub: false
adapter: lab_family.adapter:load
modalities: [ecg]
licence: MIT
access: "download lab.safetensors"
weights: {lab.safetensors: null}
weight_keys: [lab_stem.]
model_type: lab_net
poolings: [mean]
preprocessing: {fs: 500}
pretraining_data: none
seen: []
---
# lab/net
"""


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """Return the weights of a family whose three files are importable and in a folder of cards."""
    package = tmp_path / "lab_family"
    package.mkdir()
    for name, text in {"__init__.py": "", "network.py": NETWORK, "adapter.py": ADAPTER}.items():
        (package / name).write_text(text)
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards" / "lab__net.md").write_text(CARD)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("CARDIOBENCH_MODELS_DIR", "")
    plugins.add_folder("model_cards", tmp_path / "cards")
    generator = torch.Generator().manual_seed(0)
    tensors = {"lab_stem.weight": torch.randn(4, 12, 500, generator=generator), "lab_stem.bias": torch.zeros(4)}
    (tmp_path / "files").mkdir()
    save_file(tensors, tmp_path / "files" / "lab.safetensors")
    yield tmp_path / "files" / "lab.safetensors"
    for name in [name for name in sys.modules if name.partition(".")[0] == "lab_family"]:
        del sys.modules[name]


def test_family_of_a_package_is_loaded_by_its_name(weights):
    model = load_model("lab/net", weights=weights)
    assert model.loaded_by == "'lab/net' is registered -> lab_family.adapter:load"
    assert model.encoder.encode(model.encoder.transform(record())).shape == (1, 4)


def test_weights_of_a_family_are_recognised_without_their_name(weights):
    found = detect(given_files("mine", weights.rename(weights.with_name("other.safetensors"))))
    assert found.rule == "other.safetensors has keys lab_stem.* -> the adapter of lab/net"
    (weights.parent / "config.json").write_text('{"model_type": "lab_net"}')
    found = detect(given_files("mine", weights.parent))
    assert found.rule == "config.json has model_type 'lab_net' -> the adapter of lab/net"
