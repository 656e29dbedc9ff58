"""Encoders of registered models from synthetic checkpoints."""

import pytest

from cardiobench.models.load import load_model
from tests.models.checkpoints import CHECKPOINTS, DEFAULTS, ENCODER_FILES, change_card, smaller_networks
from tests.models.encoders import clip_of


@pytest.fixture(scope="module")
def small():
    """Replace networks by small ones."""
    with smaller_networks():
        yield


@pytest.fixture(scope="module")
def loaded(small, tmp_path_factory):
    """Return a function that loads the encoder of a registered model from a synthetic checkpoint, once per model."""
    folders, encoders = {}, {}

    def load(name, variant=None):
        if name.startswith("cardiobench/"):
            return encoders.setdefault(name, load_model(name).encoder)
        if (name, variant) not in encoders:
            if name not in folders:
                folder = tmp_path_factory.mktemp("checkpoint") / "files"
                folder.mkdir()
                folders[name] = CHECKPOINTS[name](folder)
            with pytest.MonkeyPatch.context() as patch:
                change_card(patch, name)
                model = load_model(name, weights=folders[name], variant=variant)
            assert (model.token_pooling, variant or "") == (DEFAULTS.get(name, ("", ""))[0], variant or "")
            encoders[name, variant] = model.encoder
        return encoders[name, variant]

    return load


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return a function that returns the folder with the file of an ECG encoder, written once per module."""
    made = {}

    def folder(name):
        if name not in made:
            made[name] = ENCODER_FILES[name](tmp_path_factory.mktemp(name.replace("/", "__")))
        return made[name]

    return folder


@pytest.fixture(scope="module")
def encoders(folders):
    """Return a function that returns an ECG encoder, loaded once per module."""
    made = {}

    def encoder(name):
        if name not in made:
            with pytest.MonkeyPatch.context() as patch:
                change_card(patch, name)  # The checksums are those of the real files.
                made[name] = load_model(name, weights=folders(name)).encoder
        return made[name]

    return encoder


@pytest.fixture(scope="session")
def clips():
    """Return recordings of different length and shape, including a still image."""
    return [clip_of(16, seed=1), clip_of(5, 100, 101, seed=2), clip_of(1, 90, 60, seed=3)]
