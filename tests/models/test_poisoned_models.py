"""Check that loading registered models runs no code from a folder full of modules and malicious pickles."""

import json
import pickle
import shutil
from pathlib import Path

import pytest
import torch

from cardiobench.cli.doctor import examine
from cardiobench.core.errors import BadModel
from cardiobench.models.cards import card, list_models
from cardiobench.models.load import load_model
from cardiobench.models.registry import NO_ADAPTER
from tests.models.checkpoints import CHECKPOINTS, change_card, smaller_networks
from tests.models.test_safe_folder import CODE, PAYLOAD, Harmful

pytestmark = pytest.mark.filterwarnings("ignore:Detected pickle protocol")  # The payload uses plain pickle.
LOADABLE = [name for name in list_models() if card(name).weights and card(name).adapter != NO_ADAPTER]
CONFIGS = ("config.json", "preprocessor_config.json", "tokenizer_config.json", "processor_config.json")
MODULES = ("payload.py", "hubconf.py", "modeling.py", "configuration.py", "__init__.py", "sitecustomize.py")
TEXTS = (".json", ".txt", ".csv", ".yaml", ".md")


@pytest.fixture
def made(request, tmp_path, monkeypatch):
    """Return a registered model, the folder of its synthetic checkpoint, and the argument of `--weights`."""
    change_card(monkeypatch, request.param)
    folder = tmp_path / "files"
    folder.mkdir()
    with smaller_networks():
        yield request.param, folder, CHECKPOINTS[request.param](folder)


def folders_of(folder: Path) -> set[Path]:
    return {folder, *(path.parent for path in folder.rglob("*") if path.is_file())}


@pytest.mark.slow
@pytest.mark.parametrize("made", LOADABLE, indirect=True)
def test_code_next_to_weights_is_not_run(made, tmp_path):
    """Add modules under every usual name, and let existing and new configuration files name them."""
    name, folder, weights = made
    mark = tmp_path / "was run"
    for place in folders_of(folder):
        for module in MODULES:
            (place / module).write_text(PAYLOAD.format(mark=str(mark)))
        for config in {*CONFIGS, *(path.name for path in place.glob("*.json"))}:
            path = place / config
            content = json.loads(path.read_text()) if path.is_file() else {}
            if isinstance(content, dict):
                path.write_text(json.dumps(content | {"auto_map": CODE, "trust_remote_code": True}))
    problem = examine(name, weights=weights).problem  # Load the model as a run does.
    assert problem is None or "code" in str(problem)
    assert not mark.exists()


@pytest.mark.slow
@pytest.mark.parametrize("made", LOADABLE, indirect=True)
def test_no_pickle_in_any_file_is_run(made, tmp_path):
    """Replace each binary file in turn by a pickle that runs a command: bare, and as torch saves it."""
    name, folder, weights = made
    mark = tmp_path / "was run"
    binaries = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in TEXTS]
    assert binaries, f"the checkpoint of {name} has no weights"
    for path in binaries:
        good = shutil.copy2(path, tmp_path / "good")
        # A file that the default variant does not need is read by another variant.
        for write in (
            lambda target: target.write_bytes(pickle.dumps(Harmful(mark))),
            lambda target: torch.save({"state_dict": Harmful(mark)}, target),
        ):
            write(path)
            assert any(refused(name, weights, variant) for variant in (None, *card(name).variants)), path.name
            assert not mark.exists(), path
        shutil.copy2(good, path)
    assert not refused(name, weights, None)


def refused(name: str, weights: Path, variant: str | None) -> bool:
    try:
        load_model(name, weights=weights, variant=variant)
    except BadModel:
        return True
    return False


def test_no_loadable_model_is_left_out():
    assert set(LOADABLE) == set(CHECKPOINTS)
