"""Test structure and adapters of networks of every loader with small random weights."""

import numpy as np
import pytest
import torch

from cardiobench.extensions.finetune.adapt import adapt, factor, groups_of
from cardiobench.extensions.finetune.network import FinetunedNetwork
from cardiobench.extensions.finetune.protocol import Finetune
from cardiobench.extensions.finetune.recipe import FinetuneRecipe
from cardiobench.models.load import load_model
from tests.models.checkpoints import CHECKPOINTS, change_card, smaller_networks
from tests.models.tiny import tiny_open_clip, tiny_siglip, tiny_timm
from tests.versions.models import ecg
from tests.versions.readers import clip

LIBRARIES = {"transformers": tiny_siglip, "timm": tiny_timm, "open_clip": tiny_open_clip}
BLOCKS = {
    **dict.fromkeys(LIBRARIES, 2),
    "PKUDigitalHealth/ECGFounder": 7,
    "kweimann/ECG-JEPA": 8,
    "Edoardo-BS/hubert-ecg-small": 7,
    "CarDS-Yale/PanEcho": 12,
}
BLOCKS = {name: blocks for name, blocks in BLOCKS.items() if name in LIBRARIES or name in CHECKPOINTS}
SLOW = ("CarDS-Yale/PanEcho",)


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in BLOCKS])
def loaded(request, tmp_path, monkeypatch):
    name = request.param
    with smaller_networks():
        if name in LIBRARIES:
            return name, load_model(str(LIBRARIES[name](tmp_path / "model"))).encoder
        change_card(monkeypatch, name)
        return name, load_model(name, weights=CHECKPOINTS[name](tmp_path)).encoder


@pytest.mark.slow
def test_lora_trains_only_adapters(loaded):
    """Check that vectors without adapters equal the model's, that frozen weights stay unchanged, and that every adapter changes."""
    name, encoder = loaded
    parts = encoder.transform(clip() if "echo" in encoder.modalities else ecg())[:1]
    vectors = encoder.encode(parts)
    before = {key: one.clone() for key, one in encoder.network.state_dict().items()}
    scale = np.stack([np.zeros(vectors.shape[-1]), np.ones(vectors.shape[-1])])
    network = FinetunedNetwork(encoder, scale, 2, torch.device("cpu"))
    structure = network.structure(parts, name)
    assert structure.blocks == BLOCKS[name]
    recipe = Finetune(rank=2)
    torch.manual_seed(0)
    adapt(network, structure, "lora", recipe, name)
    torch.testing.assert_close(network.encode(parts), vectors, atol=1e-5, rtol=1e-4)
    optimiser = torch.optim.SGD(groups_of(network, structure, recipe, 0.1))
    for _ in range(2):  # In the first step, only half of each adapter has a gradient.
        optimiser.zero_grad()
        network.train()(parts[None]).sum().backward()
        optimiser.step()
    trained = {key: one for key, one in network.named_parameters() if one.requires_grad}
    assert all("lora_" in key or key.startswith("head.") for key in trained)
    assert all(one.grad is not None for one in trained.values())
    after = {key.replace("base_layer.", ""): one for key, one in network.networks[0].state_dict().items()}
    assert all(torch.equal(after[key], one) for key, one in before.items())
    assert all(torch.equal(encoder.network.state_dict()[key], one) for key, one in before.items())
    assert not torch.allclose(network.eval().encode(parts), vectors, atol=1e-4)


def test_later_blocks_learn_ten_times_as_fast():
    steps = FinetuneRecipe(layer_rates="steps")
    for blocks, later in ((12, 7), (5, 3)):
        rates = [factor(depth, blocks, steps) for depth in range(1, blocks + 1)]
        assert rates == [0.01] * (later - 1) + [0.1] * (blocks - later + 1)
    assert factor(None, 12, steps) == 1
