"""Check that the store gets a new generation if the model's outputs changed, and is continued otherwise."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import cardiobench
from cardiobench.core.console import Console
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.cards import find_card
from cardiobench.runner.context import RunContext
from cardiobench.runner.generation import current_plan
from cardiobench.runner.processes import SingleProcess
from tests.embeddings.test_repeated_encoding import Source, linear, model

OLD, NEW = {"torch": "2.4.1"}, {"torch": "2.6.0"}


@dataclass
class Plan:
    store: EmbeddingStore
    complete: bool
    source: Source


class Cpu(SingleProcess):
    device = torch.device("cpu")


@pytest.fixture
def generation(tmp_path, monkeypatch, capsys):
    """Choose the generation for a model with the current libraries; set whether any recording is left to encode."""

    def choose(loaded, libraries, *, complete=False):
        monkeypatch.setattr("cardiobench.runner.generation.library_versions", lambda media="": libraries)
        context = RunContext(None, Cpu(), None, Console())
        plan = current_plan(loaded, lambda number: Plan(open_store(number), complete, Source()), context)
        return plan.store.generation, capsys.readouterr().out

    def open_store(number):
        return EmbeddingStore(tmp_path, "lab/mine", "toy", {}, generation=number)

    def fill(network, libraries, number=0):
        vectors = network(torch.from_numpy(Source().recording(1))).numpy()
        open_store(number).append(["b"], ["1"], [vectors], libraries=libraries)

    return SimpleNamespace(choose=choose, fill=fill)


def other(parts):
    return linear(parts) * 1.01


def hub(network, **more):
    return model(network, weight_files={"model.safetensors": "0" * 64}, **more)


def test_hub_model_libraries_are_checked_on_growth(generation):
    generation.fill(linear, OLD)
    assert generation.choose(hub(linear), NEW)[0] == 0
    assert generation.choose(hub(other), OLD)[0] == 0, "with the libraries of the shards, nothing is encoded again"
    assert generation.choose(hub(other), NEW, complete=True)[0] == 0, "nothing is added"
    number, said = generation.choose(hub(other), NEW)
    assert number == 1 and "lab/mine no longer gives the embeddings in" in said and "those of b differ by 0.0" in said
    generation.fill(other, NEW, 1)
    assert generation.choose(hub(other), NEW) == (1, "")


def test_difference_below_a_thousandth_is_rounding(generation):
    generation.fill(linear, OLD)
    assert generation.choose(hub(lambda parts: linear(parts) * 1.0001), NEW)[0] == 0


def test_model_with_golden_vectors_is_not_asked(generation):
    generation.fill(linear, OLD)
    assert (
        generation.choose(
            hub(other, card=replace(find_card("google/siglip2-base-patch16-224"), adapter="lab.adapter:load")), NEW
        )[0]
        == 0
    )
    assert generation.choose(hub(other, card=find_card("google/siglip2-base-patch16-224")), NEW)[0] == 1
    assert generation.choose(model(other), NEW)[0] == 0, "a baseline has no weights"


def test_user_models_are_always_checked(generation):
    generation.fill(linear, OLD)
    assert generation.choose(model(linear, custom=("Mine 1",)), OLD, complete=True)[0] == 0
    assert generation.choose(model(other, custom=("Mine 1",)), OLD, complete=True)[0] == 1


@pytest.mark.slow
def test_results_from_two_library_versions_are_marked(tmp_path, monkeypatch):
    folders = {"output_dir": tmp_path / "out", "cache_dir": tmp_path / "cache", "workers": 0, "resamples": 20}
    results = []
    for libraries, limit in ((OLD, 30), (NEW, None)):
        monkeypatch.setattr("cardiobench.embeddings.store.library_versions", lambda media="", found=libraries: found)
        results += cardiobench.evaluate("cardiobench/constant", "ptb_xl_sample/cd", "knn", limit=limit, **folders)
    said = [[line for line in result.warnings if "embeddings computed" in line] for result in results]
    assert said == [[], ["embeddings computed with torch 2.4.1 and 2.6.0"]]
    assert [result.stamp["libraries"] for result in results] == [OLD, {"torch": "2.4.1 and 2.6.0"}]
    assert np.isfinite(results[1].score.value)
