"""Fixtures for a loopback Hub and its clients."""

import pytest

from cardiobench.data.prepare import prepare
from cardiobench.data.twin import write_twin
from tests.hub.server import Hub
from tests.hub.store import User

ALICE, BOB = "hf_SecretOfAlice0123456789", "hf_SecretOfBob9876543210"
USERS = {ALICE: User("alice", ("org", "cardiobench")), BOB: User("bob")}


@pytest.fixture
def hub():
    with Hub(USERS) as running:
        yield running


@pytest.fixture
def client(hub, monkeypatch, tmp_path):
    """Connect this process to the loopback Hub as alice; return a function that switches the user."""
    from huggingface_hub import constants, hf_api

    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(hf_api.api, "endpoint", hub.url)  # These fields are functions; elsewhere they are methods.
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)

    def become(token: str) -> None:
        monkeypatch.setenv("HF_TOKEN", token)

    become(ALICE)
    return become


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Prepare a twin of a dataset under an agreement, and the bundled sample."""
    out = tmp_path_factory.mktemp("prepared")
    write_twin("tmed2", out / "twin", patients=6)
    prepare("tmed2", out / "twin", out, allow_missing=True)
    prepare("ptb_xl_sample", None, out)
    return out
