"""Load a registered model from a Hub: pinned commit, checksum and offline use."""

from dataclasses import replace
from hashlib import sha256
from types import MappingProxyType

import numpy as np
import pytest
import torch

from cardiobench.cli.doctor import examine
from cardiobench.core.errors import BadModel
from cardiobench.data.media.types import Clip
from cardiobench.models import cards
from cardiobench.models.cards import card
from cardiobench.models.load import load_model
from tests.models.tiny import tiny_open_clip

NAME = "mkaichristensen/echo-clip"
FILE = "open_clip_pytorch_model.bin"


@pytest.fixture
def repository(hub, client, tmp_path):
    """Return the model's repository with two commits; the later one has a damaged file."""
    found = hub.store.put("model", NAME, tiny_open_clip(tmp_path / "files", safe=False))
    good = found.branches["main"]
    hub.store.put("model", NAME, {FILE: b"changed"})
    return found, good


@pytest.fixture
def pin(monkeypatch):
    """Return a function that changes fields of the card."""

    def change(**facts):
        table = MappingProxyType({**cards._cards(), NAME: replace(card(NAME), **facts)})
        monkeypatch.setattr(cards, "_cards", lambda: table)

    return change


def clip():
    frames = np.random.default_rng(5).integers(0, 256, (41, 50, 70, 3), dtype=np.uint8)
    return Clip(frames, np.arange(41), 41)


def vectors(model):
    return model.encoder.encode(model.encoder.transform(clip()))


@pytest.mark.slow
def test_pinned_commit_then_no_network(hub, repository, pin, monkeypatch):
    from huggingface_hub import constants

    found, good = repository
    digest = sha256(found.commits[good].files[FILE]).hexdigest()
    pin(revision=good, weights={FILE: digest})
    online = load_model(NAME)
    assert online.revision == good
    assert online.weight_files == {FILE: digest}
    assert ("commit", f"{good} (pinned by the card)") in examine(NAME).facts

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    before = len(hub.requests)
    assert torch.equal(vectors(load_model(NAME)), vectors(online))
    assert len(hub.requests) == before


def test_other_commit_than_pinned(repository, pin):
    _found, good = repository
    pin(revision="f" * 40, weights={FILE: "0" * 64})
    encoder = load_model(NAME, revision=good)
    assert encoder.revision == good
    assert encoder.warnings == (f"revision {good} was requested, but the card of {NAME} describes {'f' * 40}",)
    with pytest.raises(BadModel, match=f"{NAME} has no revision '{'f' * 40}'"):
        load_model(NAME)


def test_file_with_another_checksum_is_refused(repository, pin):
    pin(revision=repository[1], weights={FILE: "0" * 64})
    with pytest.raises(BadModel, match=r"differs from the file in the card of"):
        load_model(NAME)
    pin(revision=repository[0].branches["main"], weights={FILE: None})
    with pytest.raises(BadModel, match="is truncated or not a PyTorch file"):
        load_model(NAME)


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [(403, "GatedRepo", "is gated. Accept its terms"), (401, "GatedRepo", "is gated. Accept its terms"),
     (401, "RepoNotFound", "neither a folder here nor a model on the Hub that you can see")],
)  # fmt: skip
def test_missing_access_is_explained(hub, repository, pin, status, code, message):
    pin(revision=repository[1])
    hub.faults.add("(GET|HEAD) .*echo-clip", times=50, status=status, headers={"X-Error-Code": code})
    with pytest.raises(BadModel) as caught:
        load_model(NAME)
    assert message in str(caught.value)
    assert "--weights PATH" in str(caught.value)
    assert "hf_Secret" not in str(caught.value)
