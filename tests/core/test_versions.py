"""Check that components have a version and a stable id, and that user components are identified by code."""

from functools import partial
from types import ModuleType

import pytest

from cardiobench.core.resources import PACKAGE
from cardiobench.core.versions import component_version, is_own, stated_versions
from cardiobench.data.media import video
from cardiobench.models.base import Encoder
from cardiobench.models.baselines import random_xresnet1d101
from cardiobench.models.custom import BaseEncoder
from cardiobench.models.image import ImageTextEncoder
from cardiobench.protocols import knn, list_protocols, protocol_class
from cardiobench.protocols.knn import NearestNeighbours
from cardiobench.protocols.linear import streamed


def test_modules_classes_and_functions_state_versions():
    assert component_version(video) == "reader video 1"
    assert component_version(ImageTextEncoder) == "encoder image 1 < encoder network 1"
    load, stated = random_xresnet1d101.load, "adapter random-xresnet1d101 1"
    assert component_version(load) == component_version(partial(load, None)) == stated


def test_raising_a_version_changes_the_identity(monkeypatch):
    monkeypatch.setattr(video, "VERSION", 2)
    assert component_version(video) == "reader video 2"


@pytest.mark.parametrize("component", [streamed, Encoder])
def test_built_in_component_without_a_version_is_refused(component):
    with pytest.raises(TypeError, match="has no version"):
        component_version(component)


@pytest.mark.slow
def test_ids_do_not_depend_on_module_paths():
    """Check that no id repeats a module path or class name, because renaming those must not change the id."""
    stated = stated_versions()
    assert {"reader video", "adapter random-vit", "protocol probe", "scoring", "phantoms"} <= stated.keys()
    assert all(isinstance(version, int) and version >= 1 for version in stated.values())
    assert not [name for name in stated if PACKAGE.name in name or "." in name or ":" in name]


def test_two_modules_with_one_id_are_refused(tmp_path, monkeypatch):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text('COMPONENT = "reader x"\nVERSION = 1\n')
    monkeypatch.setattr("cardiobench.core.versions.PACKAGE", tmp_path)
    with pytest.raises(ValueError, match=r"b\.py uses the id 'reader x' of another component"):
        stated_versions()


@pytest.mark.parametrize("name", list_protocols())
def test_every_protocol_states_a_version(name):
    assert component_version(protocol_class(name)).startswith(f"protocol {name} ")


def test_user_subclass_does_not_inherit_the_built_in_version(monkeypatch):
    class Mine(NearestNeighbours):
        name = "mine"

    stated = component_version(Mine)
    assert stated.endswith(f"< protocol knn {knn.VERSION}") and Mine.__qualname__ in stated
    monkeypatch.setattr(knn, "VERSION", 99)
    assert component_version(Mine) == f"{stated.rpartition(' ')[0]} 99"


def test_stated_user_version_replaces_the_code_digest():
    class Stated(BaseEncoder):
        version = 3

    class Unstated(Stated):
        pass

    assert component_version(Stated) == f"{Stated.__qualname__} 3 < encoder base 2"
    assert component_version(Unstated).split(" < ")[1:] == component_version(Stated).split(" < ")
    assert component_version(Unstated).split(" < ")[0] != f"{Unstated.__qualname__} 3"


def test_user_module_with_a_version_needs_an_id(tmp_path):
    module = ModuleType("somebody")
    path = tmp_path / "somebody.py"
    path.write_text("VERSION = 1\n")
    module.__file__, module.VERSION = str(path), 1
    assert component_version(module) != "None 1"  # Many modules use this constant name with another meaning.
    module.COMPONENT = "reader x"
    assert component_version(module) == "reader x 1"
    assert not is_own(module) and is_own(video) and is_own(random_xresnet1d101.load)
