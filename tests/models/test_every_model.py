"""Test every registered library model on a tiny checkpoint: complete, in evaluation mode and deterministic."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
import torch

from cardiobench.core.errors import BadModel
from cardiobench.data.media.types import Clip
from cardiobench.embeddings.extract import PartEncoder
from cardiobench.models import cards
from cardiobench.models.base import Encoder, TextEncoder
from cardiobench.models.cards import card, list_models
from cardiobench.models.load import BY_FILES, NO_ADAPTER, load_model
from tests.models.checkpoints import CHECKPOINTS, TINY

CPU = torch.device("cpu")


@pytest.fixture
def made(request, tmp_path, monkeypatch):
    """Return the name of a registered model and a tiny checkpoint with the files on its card."""
    name = request.param
    # The card's checksums are those of the real files.
    unknown = replace(card(name), weights=dict.fromkeys(card(name).weights))
    table = MappingProxyType({**cards._cards(), name: unknown})
    monkeypatch.setattr(cards, "_cards", lambda: table)
    return name, TINY[name](tmp_path / "files")


def clips():
    rng = np.random.default_rng(5)
    shapes = (6, 50, 70), (1, 61, 41), (45, 40, 40)
    found = [rng.integers(0, 256, (*shape, 3), dtype=np.uint8) for shape in shapes]
    return [Clip(frames, np.arange(len(frames)), len(frames)) for frames in found]


def test_every_registered_model_is_tested():
    loadable = {name for name in list_models() if card(name).weights and card(name).adapter != NO_ADAPTER}
    assert loadable == set(CHECKPOINTS)
    assert {name for name in loadable if card(name).adapter == BY_FILES} == set(TINY)


@pytest.mark.slow
@pytest.mark.parametrize("made", list(TINY), indirect=True)
def test_same_clip_gives_the_same_embedding(made):
    name, folder = made
    loaded = load_model(name, weights=folder)
    encoder = loaded.encoder
    assert isinstance(encoder, Encoder)
    assert encoder.name == name
    assert loaded.loaded_by.startswith(f"'{name}' is registered; ")
    assert list(loaded.weight_files) == list(card(name).weights)
    assert loaded.preprocessing["colour"] == card(name).preprocessing["colour"]
    assert isinstance(encoder, TextEncoder) == card(name).text
    networks = [encoder.network, *([encoder.text_network] if card(name).text else [])]
    assert not any(module.training for network in networks for module in network.modules())

    encode = PartEncoder(loaded, CPU)
    parts = [encoder.transform(clip) for clip in clips()]
    # The network normalises on its device; only DINOv3's processor rescales grey levels before resizing.
    travelling = torch.float32 if "dinov3" in name else torch.uint8
    assert all(part.dtype == travelling for part in parts)
    together = encode(torch.cat(parts)).split([len(part) for part in parts])
    again = encode(torch.cat(parts)).split([len(part) for part in parts])
    for part, vectors, repeated in zip(parts, together, again, strict=True):
        assert torch.equal(vectors, repeated)
        torch.testing.assert_close(encode(part), vectors, rtol=0, atol=1e-6)
    torch.testing.assert_close(
        PartEncoder(load_model(name, weights=folder), CPU)(parts[0]), together[0], rtol=0, atol=1e-6
    )
    if card(name).text:
        texts = ["severe aortic stenosis", "ejection fraction 35 %"]
        assert torch.equal(encoder.encode_text(texts), encoder.encode_text(texts))
        torch.testing.assert_close(encoder.encode_text(texts[:1]), encoder.encode_text(texts)[:1], rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("made", [name for name in TINY if card(name).poolings or card(name).variants], indirect=True)
def test_everything_offered_by_a_card_exists(made):
    name, folder = made
    clip = clips()[2]
    seen = set()
    for pooling in card(name).poolings or (None,):
        for variant in card(name).variants or (None,):
            loaded = load_model(name, weights=folder, pooling=pooling, variant=variant)
            encoder = loaded.encoder
            parts = encoder.transform(clip)
            seen.add((loaded.setting, str(loaded.preprocessing), encoder.encode(parts).sum().item()))
    offered = max(1, len(card(name).poolings)) * max(1, len(card(name).variants))
    for place in range(2):
        assert len({one[place] for one in seen}) == offered, "every choice has a separate key and folder"


@pytest.mark.parametrize("name", ["bowang-lab/EchoJEPA", "siemens-healthineers/EchoVLM"])
def test_models_without_public_weights_are_reported(name, tmp_path):
    assert not card(name).public_weights and card(name).seen == ("mimic_iv_echo",)
    for weights in (None, tmp_path):
        with pytest.raises(BadModel, match="available outside the authors' group"):
            load_model(name, weights=weights)
