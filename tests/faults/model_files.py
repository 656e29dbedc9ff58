"""Model files of every loader for tests of damage."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from cardiobench.core.resources import folder as package_folder
from cardiobench.models.cards import read_card
from cardiobench.models.families.echoprime.files import read_retrieval
from cardiobench.models.files import given_files
from cardiobench.models.load import load_model
from tests.faults.place import Place
from tests.models.echo.fake import candidate_bank, section_weights
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


def candidates(name: str) -> Callable[[Path], Path]:
    """Return a function that writes EchoPrime's study bank and returns one of its files."""

    def make(folder: Path) -> Path:
        candidate_bank(folder)
        section_weights(folder / "MIL_weights.csv")
        return folder / name

    return make


def retrieval(path: Path) -> object:
    return read_retrieval(given_files("echonet/EchoPrime", path.parent))


def model_card(folder: Path) -> Path:
    return Path(shutil.copy(package_folder("model_cards") / "CarDS-Yale__PanEcho.md", folder))


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
    "candidate labels, a pickle": Place(candidates("candidate_labels.pkl"), retrieval),
    "candidate embeddings": Place(candidates("candidate_embeddings_p1.pt"), retrieval),
    "candidate studies": Place(candidates("candidate_studies.csv"), retrieval, "text"),
    "section weights": Place(candidates("MIL_weights.csv"), retrieval, "text"),
}
