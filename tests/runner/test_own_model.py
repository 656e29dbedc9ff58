"""Test user models: three members in a file are enough, given by path, module, plug-in or object."""

import importlib.metadata
import sys

import pytest

import cardiobench
from cardiobench.core.errors import BadModel
from cardiobench.models.custom import find_custom

SOURCE = """
import torch
from cardiobench import BaseEncoder
from cardiobench.data.media import Ecg

class Means(BaseEncoder):
    name = "lab/means"

    def transform(self, recording: Ecg) -> torch.Tensor:
        return torch.from_numpy(recording.signal).float().mean(axis=0, keepdim=True)

    def encode(self, parts):
        return parts
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "my_means.py"
    path.write_text(SOURCE)
    return path


def evaluated(model, tmp_path):
    options = {"output_dir": tmp_path / "out", "cache_dir": tmp_path / "cache", "workers": 0, "resamples": 50}
    (result,) = cardiobench.evaluate(model, "ptb_xl_sample/cd", "knn", **options)
    assert result.model["name"] == "lab/means" and result.coverage == {"scored": 122, "expected": 122}
    return result


@pytest.mark.slow
def test_file_a_module_a_plug_in_and_an_object_are_the_same_model(file, tmp_path, monkeypatch):
    by_path = evaluated(f"{file}:Means", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    by_module = evaluated("my_means:Means", tmp_path)
    by_object = evaluated(sys.modules["my_means"].Means(), tmp_path)
    point = importlib.metadata.EntryPoint("means", "my_means:Means", "cardiobench.models")
    monkeypatch.setattr("cardiobench.core.plugins.entry_points", lambda group: {"means": point})
    by_plug_in = evaluated("means", tmp_path)
    assert by_path.score == by_module.score == by_object.score == by_plug_in.score
    assert by_path.model["revision"] == by_object.model["revision"]


def test_edited_file_is_a_new_revision(file, tmp_path):
    before = find_custom(f"{file}:Means")().revision
    file.write_text(SOURCE.replace("mean(axis=0", "amax(axis=0"))
    assert find_custom(f"{file}:Means")().revision != before


@pytest.mark.parametrize(
    ("name", "message"),
    [("nowhere.py:Means", "there is no file"), ("no_such_package:Means", "there is no module no_such_package")],
)
def test_missing_inputs_are_reported(name, message):
    with pytest.raises(BadModel, match=message):
        find_custom(name)


def test_missing_class_and_class_without_encoder(file, tmp_path):
    with pytest.raises(BadModel, match=r"no class Median\. Its classes: .*Means"):
        find_custom(f"{file}:Median")
    with pytest.raises(BadModel, match=r"dict is not an encoder: it lacks revision, .*BaseEncoder"):
        cardiobench.evaluate(type("dict", (), {"name": "x"})(), "ptb_xl_sample/cd", output_dir=tmp_path)
    for name in ("org/name", "C:/models", "cardiobench/constant"):
        assert find_custom(name) is None
