"""Check that embedding keys depend on component versions, settings and contents, but not on libraries."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from cardiobench.data import catalog
from cardiobench.data.media import ecg_wfdb, overlays, video
from cardiobench.embeddings.key import READERS, embedding_key
from cardiobench.models import from_transformers, image, network_encoder
from cardiobench.models.base import LoadedModel
from cardiobench.models.baselines import minirocket, random_xresnet1d101
from cardiobench.models.blocks import signal_encoder as encoder
from cardiobench.models.load import load_model
from tests.models.tiny import tiny_siglip

SETS = {"siglip": "camus", "random": "ptb_xl", "minirocket": "ptb_xl", "pixel-motion": "echonet_dynamic"}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, LoadedModel]:
    folder = tmp_path_factory.mktemp("models")
    return {
        "siglip": load_model(str(tiny_siglip(folder / "siglip"))),
        "random": load_model("cardiobench/random-xresnet1d101"),
        "minirocket": load_model("cardiobench/minirocket"),
        "pixel-motion": load_model("cardiobench/pixel-motion"),
    }


def dataset(name, masked=False):
    return SimpleNamespace(spec=catalog.spec(name), masked=masked)


def keys(models):
    return {name: embedding_key(model, dataset(SETS[name])) for name, model in models.items()}


ECG, ECHO = {"random", "minirocket"}, {"siglip", "pixel-motion"}


@pytest.mark.parametrize(
    ("module", "changed"),
    [
        (video, ECHO),
        (ecg_wfdb, ECG),
        (from_transformers, {"siglip"}),
        (image, {"siglip"}),
        (network_encoder, {"siglip"}),
        (encoder, {"random"}),
        (random_xresnet1d101, {"random"}),
        (minirocket, {"minirocket"}),
        (overlays, set()),
    ],
)
def test_version_changes_keys_of_dependent_models(models, monkeypatch, module, changed):
    before = keys(models)
    monkeypatch.setattr(module, "VERSION", module.VERSION + 1)
    after = keys(models)
    assert {name for name in models if before[name] != after[name]} == changed


def test_masked_overlays_change_the_key(models, monkeypatch):
    before = embedding_key(models["siglip"], dataset("camus", masked=True))
    monkeypatch.setattr(overlays, "VERSION", 2)
    assert embedding_key(models["siglip"], dataset("camus", masked=True)) != before


def test_every_kind_of_media_has_its_readers():
    assert {catalog.spec(name).media for name in catalog.list_datasets()} <= READERS.keys()


def test_keys_contain_no_paths_classes_or_libraries(models):
    """Check that a moved module, a renamed class and another version of numpy do not change the key."""
    for name, key in keys(models).items():
        components = json.dumps([key["adapter"], key["readers"]])
        classes = {type(models[name].encoder).__name__, *(one.__name__ for one in models[name].code)}
        assert "cardiobench" not in components and "numpy" not in json.dumps(key)
        assert not [word for word in classes - {"load"} if word in components]


BUILDER = """
from cardiobench.data import CardioBuilder, DatasetSpec, Task

class Mine(CardioBuilder):
    SPEC = DatasetSpec(
        name="mine_of_key", title="", version="1.0.0", modality="echo", media="video", licence="", access="",
        redistributable=True, columns={}, tasks=(Task("mine_of_key/ef", "regression", "ef", ("mae",)),),
    )
    LIMIT = 1
"""


def test_user_builder_is_identified_by_its_code(models, tmp_path, monkeypatch):
    path = tmp_path / "mine_of_key" / "builder.py"
    path.parent.mkdir()
    path.write_text(BUILDER)
    monkeypatch.setenv("CARDIOBENCH_DATASETS_DIR", str(tmp_path))
    before = embedding_key(models["siglip"], dataset("mine_of_key"))
    assert before["builder"].startswith("Mine ") and "builder" not in embedding_key(models["siglip"], dataset("camus"))
    path.write_text(BUILDER + "# a comment\n")
    assert embedding_key(models["siglip"], dataset("mine_of_key")) == before
    path.write_text(BUILDER.replace("LIMIT = 1", "LIMIT = 2"))
    assert embedding_key(models["siglip"], dataset("mine_of_key")) != before


def test_commit_without_new_weights_changes_nothing(models):
    model = models["siglip"]
    encoder = SimpleNamespace(**{**vars(model.encoder), "revision": "another commit"})
    pushed = replace(model, encoder=encoder)
    assert embedding_key(pushed, dataset("camus")) == embedding_key(model, dataset("camus"))


def test_weights_and_configuration_count_by_content(tmp_path):
    folder = tiny_siglip(tmp_path / "siglip")
    key = embedding_key(load_model(str(folder)), dataset("camus"))
    (folder / "README.md").write_text("model-index: a new score")
    (folder / "results.json").write_text("{}")
    assert embedding_key(load_model(str(folder)), dataset("camus")) == key
    for file in ("config.json", "processor_config.json", "tokenizer_config.json"):
        settings = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps(settings, indent=7))
        changed = embedding_key(load_model(str(folder)), dataset("camus"))
        assert changed != key, file
        key = changed


def test_local_models_are_identified_without_a_name(models, tmp_path):
    folder = tiny_siglip(tmp_path / "siglip")
    renamed = folder.rename(tmp_path / "another")
    assert embedding_key(load_model(str(renamed)), dataset("camus")) == embedding_key(
        models["siglip"], dataset("camus")
    )
    assert embedding_key(models["pixel-motion"], dataset("camus"))["model"] == "cardiobench/pixel-motion"
