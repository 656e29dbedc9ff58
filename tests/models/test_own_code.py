"""Test user code: only encoders are called, the file's folder is on the path, and errors are one message."""

import os
import sys

import numpy as np
import pytest
import torch

import cardiobench
from cardiobench import BaseEncoder
from cardiobench.core.errors import BadModel
from cardiobench.data.media import Clip, Ecg
from cardiobench.models.contract import encode, join_parts, transform
from cardiobench.models.custom import find_custom, loaded
from cardiobench.models.registry import adapter

HEAD = """
from __future__ import annotations
import sys
from typing import TYPE_CHECKING
from cardiobench import BaseEncoder

class Mine(BaseEncoder):
    name = "lab/mine"
    def transform(self, recording): return recording
    def encode(self, parts): return parts

CALLED = []
"""


@pytest.fixture(autouse=True)
def own_path(monkeypatch):
    """Undo changes of an import to path and modules, and hide modules of the same name from other tests."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in [name for name in sys.modules if name.startswith("cardiobench_model_")]:
        monkeypatch.delitem(sys.modules, name)
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        if name.startswith(("cardiobench_model_", "cardiology_")):
            del sys.modules[name]


def written(folder, source, name="mine.py"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + source)
    return path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("os:system", "not a class"),
        ("json:dumps", "without an annotation"),
        ("json:JSONDecoder", "lacks transform"),
        ("shutil:rmtree", "is a|without an annotation|not a class"),
        ("os:environ", "not a class"),
        ("pathlib:Path", "lacks transform, encode"),
        ("sklearn.preprocessing:StandardScaler", "lacks encode"),
        ("subprocess:check_output", "without an annotation|not a class"),
        ("builtins:exec", "not a class"),
        ("os:no_such", "has no class no_such"),
        ("..os:system", "not the name of a Python module"),
        ("org/name:Tag", "not the name of a Python module"),
        ("a\0b:X", "not the name of a Python module"),
        ("a\0b.py:X", "there is no file"),
        ("/nowhere/x.py:X", "there is no file"),
        ("torch.nn:Linear", "lacks transform, encode"),
    ],
)
def test_only_encoders_are_called(name, message, monkeypatch):
    monkeypatch.setattr(os, "system", os.system)
    with pytest.raises(BadModel, match=message):
        find_custom(name)
    with pytest.raises(BadModel):
        cardiobench.evaluate(name, "ptb_xl_sample/cd")


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("def make(): CALLED.append(1); return Mine()", "make"),
        ("def make() -> dict: CALLED.append(1); return Mine()", "make"),
        ("def make() -> 'Nowhere': CALLED.append(1)", "make"),
        ("make = lambda: CALLED.append(1)", "make"),
        ("class Loud:\n    def __init__(self): CALLED.append(1)", "Loud"),
        ("class Call:\n    def __call__(self): CALLED.append(1)\nmake = Call()", "make"),
        (
            "class Half(BaseEncoder):\n    name='a/b'\n    def __init__(self): CALLED.append(1)\n    encode = None",
            "Half",
        ),
        ("class Needs(Mine):\n    def __init__(self, size): CALLED.append(1)", "Needs"),
    ],
)
def test_only_encoders_in_a_file_are_called(tmp_path, source, what):
    path = written(tmp_path, source)
    with pytest.raises(BadModel):
        find_custom(f"{path}:{what}")()
    assert sys.modules["cardiobench_model_mine"].CALLED == []


@pytest.mark.parametrize(
    "source",
    ["def make() -> Mine: return Mine()", "def make() -> BaseEncoder: return Mine()", "class make(Mine): pass"],
)
def test_class_and_an_annotated_function_are_called(tmp_path, source):
    assert find_custom(f"{written(tmp_path, source)}:make")().name == "lab/mine"


def test_file_imports_its_neighbours_as_a_script_does(tmp_path):
    (tmp_path / "cardiology_helper.py").write_text("WIDTH = 7\n")
    (tmp_path / "cardiology_nets").mkdir()
    (tmp_path / "cardiology_nets" / "__init__.py").write_text("DEPTH = 2\n")
    source = (
        "import cardiology_helper\nfrom cardiology_nets import DEPTH\nclass Wide(Mine): dim = cardiology_helper.WIDTH"
    )
    assert find_custom(f"{written(tmp_path, source)}:Wide")().dim == 7


def test_neighbours_of_one_name_in_two_folders_are_refused(tmp_path):
    for folder, width in (("a", 3), ("b", 4)):
        path = written(tmp_path / folder, "import cardiology_helper\nclass Wide(Mine): dim = cardiology_helper.WIDTH")
        path.with_name("cardiology_helper.py").write_text(f"WIDTH = {width}\n")
    assert find_custom(f"{tmp_path}/a/mine.py:Wide")().dim == 3
    with pytest.raises(
        BadModel, match=r"mine\.py imports cardiology_helper.*a/cardiology_helper\.py already uses the name"
    ):
        find_custom(f"{tmp_path}/b/mine.py:Wide")


def test_files_of_one_name_in_two_folders_are_two_modules(tmp_path):
    first, second = (written(tmp_path / folder, f"Mine.dim = {dim}") for folder, dim in (("a", 3), ("b", 4)))
    made = [find_custom(f"{path}:Mine")() for path in (first, second)]
    assert [one.dim for one in made] == [3, 4]
    assert [sys.modules[type(one).__module__].__file__ for one in made] == [str(first), str(second)]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import no_such_module", r"mine\.py failed at mine\.py, line 13: ModuleNotFoundError"),
        ("def broken(:", r"mine\.py failed at mine\.py, line 13: SyntaxError"),
        ("1 / 0", r"failed at mine\.py, line 13: ZeroDivisionError"),
        ("sys.exit(3)", r"failed at mine\.py, line 13: SystemExit"),
        ("raise OSError('gone')", "OSError: gone"),
        ("class Bad(Mine):\n    def __init__(self): raise KeyError('weights')", r"line 14: KeyError"),
    ],
)
def test_error_of_the_code_is_one_message_with_its_line(tmp_path, source, message):
    what = "Bad" if "Bad" in source else "Mine"
    with pytest.raises(BadModel, match=message) as error:
        find_custom(f"{written(tmp_path, source)}:{what}")()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name", ["os:system", "json:dumps", "no_such_package:load", "os:nothing", "cardiobench.core:x"]
)
def test_card_adapter_is_its_function(name):
    with pytest.raises(BadModel):
        adapter(name)


class Toy(BaseEncoder):
    """Encoder that returns the given values."""

    name = "lab/toy"

    def __init__(self, parts=None, vectors=None, width=0):
        self.parts, self.vectors, self.width = parts, vectors, width

    @property
    def dim(self):
        return self.width

    def transform(self, recording):
        return self.parts(recording.signal if isinstance(recording, Ecg) else recording.frames)

    def encode(self, parts):
        return self.vectors(parts)


ECG = Ecg(np.zeros((5000, 12), np.float32), 500.0)
CLIP = Clip(np.zeros((4, 8, 8, 3), np.uint8), np.arange(4), 4, 30.0)


@pytest.mark.parametrize(
    ("recording", "parts", "message"),
    [
        (ECG, lambda x: (torch.zeros(1, 12, 5000), 3), r"a tuple of 2 \(a Tensor of shape \(1, 12, 5000\), a int\)"),
        (ECG, lambda x: x[None], r"a ndarray of shape \(1, 5000, 12\); expected a tensor of parts"),
        (ECG, lambda x: torch.from_numpy(x), r"shape \(5000, 12\), the ECG itself.*such as \(1, 12, 5000\)"),
        (ECG, lambda x: torch.zeros(0, 12, 5000), r"shape \(0, 12, 5000\); expected .* P >= 1"),
        (CLIP, lambda x: torch.zeros(8), r"shape \(8,\)"),
        (CLIP, lambda x: None, "gave a NoneType"),
        (CLIP, lambda x: x["frames"], r"transform failed at test_own_code\.py, line \d+: IndexError"),
        (CLIP, lambda x: torch.zeros(1, 3, 2).reshape(7), "RuntimeError: shape"),
    ],
)
def test_invalid_parts_are_reported_with_their_shape(recording, parts, message):
    with pytest.raises(BadModel, match=message):
        transform(Toy(parts), recording)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (
            lambda x: (x.mean(2), None),
            r"a tuple of 2 \(a Tensor of shape \(8, 5000\), a NoneType\) for parts .*\(8, 5000, 12\)",
        ),
        (lambda x: x.mean((1, 2)), r"shape \(8,\) for parts"),
        (lambda x: x.mean(1).T, r"shape \(12, 8\) .*expected a tensor \(8, dim\)"),
        (lambda x: x.mean(1).numpy(), "a ndarray"),
        (lambda x: {"last_hidden_state": x}, "a dict"),
        (lambda x: torch.nn.Conv1d(12, 4, 3)(x), r"encode of parts of shape \(8, 5000, 12\) failed.*12 channels"),
        (lambda x: torch.zeros(8, 0), r"shape \(8, 0\)"),
    ],
)
def test_invalid_vectors_are_reported_with_both_shapes(vectors, message):
    with pytest.raises(BadModel, match=message):
        encode(Toy(vectors=vectors), torch.zeros(8, 5000, 12))


def test_unexpected_width():
    with pytest.raises(BadModel, match=r"shape \(8, 12\) .*\(8, 16\)"):
        encode(Toy(vectors=lambda x: x.mean(1), width=16), torch.zeros(8, 5000, 12))


def test_parts_of_several_shapes_and_a_device_that_is_too_small():
    with pytest.raises(BadModel, match=r"shapes \(12, 50\), \(12, 40\).*cut, pad or resize"):
        join_parts([torch.zeros(1, 12, 50), torch.zeros(1, 12, 40)], Toy())

    def full(parts):
        raise torch.OutOfMemoryError

    with pytest.raises(torch.OutOfMemoryError):
        encode(Toy(vectors=full), torch.zeros(2, 3))


class Plain(BaseEncoder):
    name = "lab/plain"

    def transform(self, recording: Ecg):
        return torch.zeros(1, 2)

    def encode(self, parts):
        return parts


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"name": ""}, "has name ''"),
        ({"name": 5}, "has name 5"),
        ({"name": "lab/a\0b"}, "has name"),
        ({"name": "x" * 201}, "at most 200 characters"),
        ({"pooling": "max"}, "pooling 'max'"),
        ({"modalities": ("mri",)}, "mri"),
        ({"preprocessing": {"fs": object()}}, "cannot be stored as JSON"),
        ({"preprocessing": {"fs": float("nan")}}, "cannot be stored as JSON"),
        ({"preprocessing": 5}, "'int' object is not iterable"),
        ({"revision": property(lambda self: 1 / 0)}, "ZeroDivisionError"),
        ({"name": property(lambda self: 1 / 0)}, "ZeroDivisionError"),
    ],
)
def test_declared_facts_of_an_encoder_are_checked(facts, message):
    encoder = type("Plain", (Plain,), facts)()
    with pytest.raises(BadModel, match=message):
        loaded(encoder, "a test", "fp32", torch.device("cpu"))
