"""The embedding key: an edit of whatever can change a vector changes it, and nothing else does."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import cardiobench
from cardiobench.core import source_digest
from cardiobench.data import catalog
from cardiobench.embeddings import key as module
from cardiobench.embeddings.key import embedding_key, library_versions, reader_sources
from cardiobench.models.base import LoadedModel
from cardiobench.models.load import load_model
from tests.models.ecg import fake
from tests.models.tiny import tiny_siglip

PACKAGE = Path(cardiobench.__file__).parent


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, LoadedModel]:
    folder = tmp_path_factory.mktemp("models")
    (folder / "weimann").mkdir()
    return {
        "siglip": load_model(str(tiny_siglip(folder / "siglip"))),
        "weimann": load_model("kweimann/ECG-JEPA", weights=fake.jepa_weimann(folder / "weimann")),
        "minirocket": load_model("cardiobench/minirocket"),
    }


def dataset(name):
    return SimpleNamespace(spec=catalog.spec(name), masked=False)


@pytest.fixture
def edited(tmp_path, monkeypatch):
    """Gives a function that edits one source file of the package, in a copy of it that the digests are taken of."""
    copy = tmp_path / "cardiobench"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))

    def moved(path: Path) -> Path:
        return copy / path.relative_to(PACKAGE) if path.is_relative_to(PACKAGE) else path

    real = source_digest.source_digest

    def of_copy(*sources):
        files = [moved(path) for path in source_digest.source_files(*sources)]
        return real(*files)

    monkeypatch.setattr(source_digest, "PACKAGE", copy)
    source_digest._file.cache_clear()
    source_digest.import_statements.cache_clear()
    monkeypatch.setattr(module, "source_digest", of_copy)

    def edit(file: str) -> None:
        with (copy / file).open("a") as source:
            source.write("\nEDITED = True\n")

    yield edit
    source_digest._file.cache_clear()
    source_digest.import_statements.cache_clear()


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("models/processors.py", {"siglip"}),
        ("models/image.py", {"siglip"}),
        ("models/echo/crop.py", {"siglip"}),
        ("models/ecg/ecg_jepa_weimann.py", {"weimann"}),
        ("models/nets/vit_block.py", {"weimann"}),
        ("models/signal.py", {"siglip", "weimann", "minirocket"}),  # transformers may bring an ECG model
        ("models/baselines/ecg_like.py", {"minirocket"}),
        ("data/media/ecg_wfdb.py", {"siglip", "weimann", "minirocket"}),
        ("data/media/video.py", {"siglip", "weimann", "minirocket"}),
        ("models/ecg/ecg_fm.py", set()),
        ("report/markdown.py", set()),
        ("scoring/score.py", set()),
        ("cli/main.py", set()),
    ],
)
def test_an_edit_changes_the_keys_of_the_models_it_can_change(models, edited, file, changed):
    sets = {"siglip": "camus", "weimann": "ptb_xl", "minirocket": "ptb_xl"}
    before = {name: embedding_key(model, dataset(sets[name])) for name, model in models.items()}
    assert (PACKAGE / file).is_file()
    edited(file)
    after = {name: embedding_key(model, dataset(sets[name])) for name, model in models.items()}
    assert {name for name in models if before[name] != after[name]} == changed


def test_the_builder_of_a_dataset_counts():
    assert catalog.builder("camus") in reader_sources("camus")
    assert reader_sources("camus") != reader_sources("ptb_xl")


def test_versions_of_the_libraries_that_the_code_imports(models, monkeypatch):
    key = embedding_key(models["siglip"], dataset("camus"))
    assert {"av", "numpy", "PIL", "torch", "torchvision", "transformers"} <= key["libraries"].keys()
    assert "timm" not in key["libraries"]
    real = module.version
    module._version.cache_clear()
    monkeypatch.setattr(module, "version", lambda name: "99" if name == "av" else real(name))
    try:
        assert embedding_key(models["siglip"], dataset("camus")) != key
    finally:
        module._version.cache_clear()
    assert library_versions([]) == {}


def test_a_commit_that_leaves_weights_and_configuration_as_they_are_changes_nothing(models):
    model = models["siglip"]
    encoder = SimpleNamespace(**{**vars(model.encoder), "revision": "another commit"})
    pushed = replace(model, encoder=encoder)
    assert embedding_key(pushed, dataset("camus")) == embedding_key(model, dataset("camus"))


def test_weights_and_configuration_count_by_their_content_and_results_beside_them_do_not(tmp_path):
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
