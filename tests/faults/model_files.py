"""Model files of every loader for tests of damage."""

import json
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from cardiobench.core.resources import folder as package_folder
from cardiobench.models.cards import read_card
from cardiobench.models.load import load_model
from tests.faults.place import Place
from tests.models.tiny import tiny_open_clip, tiny_siglip


def model_file(name: str) -> Callable[[Path], Path]:
    return lambda folder: tiny_siglip(folder) / name


def pickled(folder: Path) -> Path:
    weights = tiny_siglip(folder) / "model.safetensors"
    path = folder / "pytorch_model.bin"
    torch.save(load_file(weights), path)
    weights.unlink()
    return path


def loaded(path: Path) -> object:
    return load_model(str(path.parent))


def model_card(folder: Path) -> Path:
    return Path(shutil.copy(package_folder("model_cards") / "mkaichristensen__echo-clip.md", folder))


def sharded(name: str) -> Callable[[Path], Path]:
    """Return a function that splits a model's weights into two files with an index."""

    def make(folder: Path) -> Path:
        weights = tiny_siglip(folder) / "model.safetensors"
        state = load_file(weights)
        halves = {f"model-0000{n + 1}-of-00002.safetensors": sorted(state)[n::2] for n in (0, 1)}
        for file, names in halves.items():
            save_file({tensor: state[tensor] for tensor in names}, folder / file, metadata={"format": "pt"})
        weights.unlink()
        index = {"metadata": {}, "weight_map": {tensor: file for file, names in halves.items() for tensor in names}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        return folder / name

    return make


def of_families() -> dict[str, Place]:
    """Return the files of the families that have a `faults.py` in the folder of their tests."""
    files = sorted((Path(__file__).parents[1] / "models" / "families").glob("*/faults.py"))
    modules = [import_module(f"tests.models.families.{file.parent.name}.faults") for file in files]
    return {name: place for module in modules for name, place in module.MODEL_FILES.items()}


MODEL_FILES = {
    "config.json": Place(model_file("config.json"), loaded, "mapping"),
    "weights": Place(model_file("model.safetensors"), loaded),
    "processor_config.json": Place(model_file("processor_config.json"), loaded, "mapping"),
    "tokenizer.json": Place(model_file("tokenizer.json"), loaded, "mapping"),
    "tokenizer_config.json": Place(model_file("tokenizer_config.json"), loaded, "mapping"),
    "tokenizer.json of open_clip": Place(
        lambda folder: tiny_open_clip(folder, text="tokenizer") / "tokenizer.json", loaded, "mapping"
    ),
    "pickled weights": Place(pickled, loaded),
    "index of shards": Place(sharded("model.safetensors.index.json"), loaded, "mapping"),
    "shard of weights": Place(sharded("model-00001-of-00002.safetensors"), loaded),
    "model card of a folder": Place(model_card, read_card, "text"),
    **of_families(),
}
