"""Test plug-ins: name conflicts, broken packages and missing folders."""

from importlib.metadata import EntryPoint

import pytest

import cardiobench
from cardiobench.cli.main import main
from cardiobench.core import plugins, resources
from cardiobench.core.errors import BadConfig, UnknownName
from cardiobench.data import catalog
from cardiobench.metrics.load import load_metric
from cardiobench.models.cards import card
from cardiobench.models.custom import find_custom
from cardiobench.protocols import protocol_class

BUILDER = """
from cardiobench.data import CardioBuilder, DatasetSpec

class Toy(CardioBuilder):
    SPEC = DatasetSpec("{name}", "Toy", "1", "ecg", "ecg", "CC BY 4.0", "", True, (), {{}})
"""


@pytest.fixture
def install(monkeypatch):
    """Simulate an installed package with a patched entry point."""

    def installed(group, name, value):
        point = EntryPoint(name, value, f"cardiobench.{group}")
        monkeypatch.setattr(plugins, "entry_points", lambda asked: {name: point} if asked == group else {})
        catalog._locations_in.cache_clear()

    yield installed
    monkeypatch.undo()
    catalog._locations_in.cache_clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a user folder that is unregistered after the test."""
    for variable in plugins.VARIABLES.values():
        monkeypatch.setenv(variable, "")
    return tmp_path


@pytest.mark.parametrize(
    ("group", "name", "call"),
    [
        ("datasets", "tmed2", cardiobench.list_datasets),
        ("metrics", "mae", cardiobench.list_metrics),
        ("protocols", "knn", cardiobench.list_protocols),
        ("models", "cardiobench/constant", lambda: find_custom("cardiobench/constant")),
    ],
)
def test_package_cannot_replace_a_built_in_component(install, group, name, call):
    install(group, name, "lab.parts:Thing")
    with pytest.raises(BadConfig, match=rf"two {group[:-1]}s are called '{name}': .* and lab\.parts:Thing of lab"):
        call()


@pytest.mark.parametrize(
    ("group", "call"),
    [
        ("datasets", catalog.spec),
        ("metrics", load_metric.__wrapped__),
        ("protocols", protocol_class),
        ("models", find_custom),
    ],
)
def test_unimportable_package_is_named(install, group, call):
    install(group, "toy", "no_such_package.parts:Thing")
    with pytest.raises(BadConfig, match=r"\(no_such_package\.parts:Thing\) of the installed package .*Repair that"):
        call("toy")


@pytest.mark.parametrize(
    ("kind", "metrics", "message"),
    [
        ("classification", ("f1_macro",), r"toy/af: no kind of task 'classification'\. The kinds are .*binary"),
        ("regression", "mae", r"toy/af: metrics 'mae'; give a tuple"),
        ("regression", (), r"toy/af: metrics \(\); give a tuple"),
    ],
)
def test_invalid_task_is_refused_when_its_dataset_is_loaded(kind, metrics, message, folder):
    task = f'{{}}, columns={{}}, tasks=(Task("toy/af", {kind!r}, "af", {metrics!r}),)'
    text = BUILDER.format(name="toy").replace("DatasetSpec\n", "DatasetSpec, Task\n").replace("{}", task)
    (folder / "toy").mkdir()
    (folder / "toy" / "builder.py").write_text(text)
    plugins.add_folder("hf_datasets", folder)
    with pytest.raises(BadConfig, match=rf"the dataset toy \(.*builder\.py\) cannot be loaded: {message}"):
        catalog.spec("toy")


def test_installed_models_are_listed(install, capsys):
    install("models", "toy/net", "lab.parts:Net")
    assert main(["list", "--models"]) == 0
    assert "model toy/net: of the installed package lab" in capsys.readouterr().out


@pytest.mark.parametrize(("group", "call"), [("datasets", catalog.spec), ("protocols", protocol_class)])
def test_object_of_the_wrong_type_is_refused(install, group, call):
    install(group, "toy", "collections:OrderedDict")
    with pytest.raises(BadConfig, match=r"collections:OrderedDict.* is (no|not a) "):
        call("toy")


def test_dataset_folder_must_have_the_name_of_its_spec(folder):
    for name, spec in (("toy_a", "toy_a"), ("toy_b", "other")):
        (folder / name).mkdir()
        (folder / name / "builder.py").write_text(BUILDER.format(name=spec))
    with pytest.raises(UnknownName):
        catalog.spec("toy_a")
    plugins.add_folder("hf_datasets", folder)
    assert catalog.spec("toy_a").title == "Toy" and catalog.dataset_folder("toy_a") == folder / "toy_a"
    assert not catalog.is_own("toy_a") and catalog.is_own("tmed2")
    with pytest.raises(BadConfig, match=r"its SPEC is called 'other'; expected 'toy_b'"):
        catalog.spec("toy_b")


def test_card_in_a_folder_registers_a_model(folder):
    text = resources.folder("model_cards").joinpath("cardiobench__constant.md").read_text(encoding="utf-8")
    (folder / "lab__still.md").write_text(text.replace("id: cardiobench/constant", "id: lab/still"), encoding="utf-8")
    plugins.add_folder("model_cards", folder)
    plugins.add_folder("model_cards", folder)
    assert card("lab/still").adapter == "constant" and cardiobench.list_models().count("lab/still") == 1
    with pytest.raises(BadConfig, match=r"there is no folder .*nowhere"):
        plugins.add_folder("model_cards", folder / "nowhere")
