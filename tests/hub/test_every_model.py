"""Load every registered Hub model at its pinned commit, then again offline."""

from pathlib import Path

import numpy as np
import pytest
import torch

from cardiobench.data.media.types import Clip, Ecg
from cardiobench.models.cards import card
from cardiobench.models.load import load_model
from tests.models.checkpoints import CHECKPOINTS, change_card, smaller_networks

ON_HUB = [name for name in CHECKPOINTS if card(name).hub]


@pytest.fixture(scope="module", autouse=True)
def small():
    """Replace networks by small ones."""
    with smaller_networks():
        yield


def vectors(model):
    encoder, rng = model.encoder, np.random.default_rng(5)
    if "ecg" in encoder.modalities:
        return encoder.encode(encoder.transform(Ecg(rng.normal(size=(5000, 12)).astype(np.float32), 500.0)))
    frames = rng.integers(0, 256, (6, 50, 70, 3), dtype=np.uint8)
    return encoder.encode(encoder.transform(Clip(frames, np.arange(6), 6)))


def test_models_outside_the_hub_state_their_source():
    """Other models are downloads from elsewhere or in installed packages; tests/models loads them from a local folder."""
    for name in set(CHECKPOINTS) - set(ON_HUB):
        assert "download" in card(name).access or card(name).package or not card(name).public_weights


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_HUB)
def test_folder_and_pinned_hub_commit_agree(name, hub, client, tmp_path, monkeypatch):
    from huggingface_hub import constants

    (tmp_path / "files").mkdir()
    given = CHECKPOINTS[name](tmp_path / "files")
    folder = given if given.is_dir() else given.parent
    repository = hub.store.put("model", name, folder)
    good = repository.resolve("main")
    hub.store.put("model", name, {Path(file).name: b"damaged" for file in card(name).weights})
    change_card(monkeypatch, name, revision=good)

    online = load_model(name)
    assert online.revision == good and repository.resolve("main") != good
    wanted = vectors(online)
    assert torch.isfinite(wanted).all() and wanted.shape[1] == online.dim
    assert torch.equal(vectors(load_model(name, weights=given)), wanted)

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    asked = len(hub.requests)
    offline = load_model(name)
    assert offline.revision == good and torch.equal(vectors(offline), wanted)
    assert len(hub.requests) == asked
