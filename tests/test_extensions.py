"""Check that each extension, dataset, metric and family of models can be deleted with its tests, and the rest still works."""

import ast
import os
import re
import sys
from itertools import combinations
from math import comb
from pathlib import Path
from types import SimpleNamespace

import pytest

from cardiobench.cli.main import main
from cardiobench.core import plugins, resources
from cardiobench.core.errors import BadConfig, BadModel
from cardiobench.core.extensions import Extension, contributions, extensions
from cardiobench.data import catalog
from cardiobench.data.catalog import list_datasets
from cardiobench.metrics.load import own_metrics
from cardiobench.models.cards import card, find_card, list_models
from cardiobench.models.registry import adapter
from cardiobench.protocols import protocol_class
from cardiobench.protocols.base import BaseProtocol
from cardiobench.tasks.task import metrics_of
from cardiobench.testing import check_extension
from tests.features import FIELDS, facts, stated
from tests.forked import run_python
from tests.without_extensions import (
    KEPT,
    ROOT,
    cards_of,
    copy_without,
    names_deleted,
    names_in,
    own_extensions,
    own_families,
)

NAMES = own_extensions()
FAMILIES = own_families()
# Names of features that are also words of the core, each with its other meaning in the feature's file.
COMMON_WORDS = {*stated("other_meaning")}


@pytest.mark.parametrize("name", NAMES)
def test_every_extension_passes_its_contract(name, monkeypatch):
    """tests/contracts/test_protocols.py checks its protocols with small settings, as all registered ones."""
    checked = []
    monkeypatch.setattr("cardiobench.testing.extension.check_protocol", checked.append)
    check_extension(name)
    assert checked == [*extensions()[name].protocols]


def test_facts_of_features_are_complete():
    """Each command of an extension has a line, and a file states nothing that no test reads."""
    assert {*facts()} <= {*NAMES} and {field for known in facts().values() for field in known} <= FIELDS
    for name, manifest in extensions().items():
        if name in NAMES:
            assert {line.split()[0] for line in stated("command_lines").get(name, ())} == {*manifest.commands}, name


def test_invalid_manifest_is_named(monkeypatch):
    point = SimpleNamespace(name="odd", value="odd:EXTENSION", dist=None, module="odd", load=lambda: {})
    monkeypatch.setattr(plugins, "entry_points", lambda group: {"odd": point} if group == "extensions" else {})
    extensions.cache_clear()
    try:
        with pytest.raises(BadConfig, match=r"'odd' .* is a dict\. Give an object of"):
            extensions()
    finally:
        extensions.cache_clear()


def test_two_extensions_with_one_protocol_are_refused(monkeypatch):
    manifests = {name: Extension(protocols={"same": f"{name}:Protocol"}) for name in ("one", "two")}
    monkeypatch.setattr("cardiobench.core.extensions.extensions", lambda: manifests)
    with pytest.raises(BadConfig, match="two protocols are called 'same': one:Protocol and two:Protocol"):
        contributions("protocols")


def core_files(root: Path):
    for path in sorted((root / "cardiobench").rglob("*.py")):
        if not {"extensions", "families"} & {*path.relative_to(root / "cardiobench").parts}:
            yield path


CODING_SYSTEM = ("ecg_labels.py", "code15")
WORD_OF = {ast.Name: "id", ast.Attribute: "attr", ast.Constant: "value"}
"""Mapping from type of syntax node to its attribute that may be a name."""


def test_core_code_names_no_extension(root):
    """Check identifiers and strings for names of extensions, their protocols and conditions.

    Docstrings and help texts may mention these names.
    """
    brought = [protocol_class(name) for name in contributions("protocols")]
    conditions = {one.condition for one in brought} - {BaseProtocol.condition}
    named = {*NAMES, *(one.name for one in brought), *conditions}
    found, common = [], set()
    for path in core_files(root):
        text = path.read_text(encoding="utf-8")
        if not any(name in text for name in named):
            continue
        for node in ast.walk(ast.parse(text)):
            word = getattr(node, WORD_OF.get(type(node), ""), None)
            if isinstance(word, str) and word in COMMON_WORDS:
                common.add(word)
            elif isinstance(word, str) and word in named:
                found.append(f"{path.relative_to(root)}:{node.lineno}: {word}")
    assert not found and common == COMMON_WORDS


def test_core_code_names_no_dataset(root):
    """Check identifiers, texts and tasks in texts; help texts and examples may mention datasets.

    The classes of CODE-15 % are a coding system, which two datasets use.
    """
    named, found = {*names_in("hf_datasets")}, []
    for path in core_files(root):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if any(name in text for name in named) else ():
            word = getattr(node, WORD_OF.get(type(node), ""), None)
            if isinstance(word, str) and word.partition("/")[0] in named and (path.name, word) != CODING_SYSTEM:
                found.append(f"{path.relative_to(root)}:{node.lineno}: {word}")
    assert not found


def test_core_code_names_no_family(root):
    """Check identifiers and strings for the names of families and for the ids of their models."""
    models = {path.stem.replace("__", "/") for name in FAMILIES for path in cards_of(name)}
    named, found = {*FAMILIES, *models}, []
    for path in core_files(root):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if any(name in text for name in named) else ():
            word = getattr(node, WORD_OF.get(type(node), ""), None)
            if isinstance(word, str) and (word in named or "models.families" in word):
                found.append(f"{path.relative_to(root)}:{node.lineno}: {word}")
    assert not found


@pytest.mark.parametrize("name", FAMILIES)
def test_family_has_its_adapter_cards_and_tests(name, root):
    assert (root / "cardiobench" / "models" / "families" / name / "adapter.py").is_file()
    assert cards_of(name), f"no model card names an adapter of {name}"
    assert (root / "tests" / "models" / "families" / name / "checkpoint.py").is_file()


@pytest.mark.parametrize("name", FAMILIES)
def test_registry_without_a_family(name, monkeypatch, tmp_path):
    """Check that other models are found, and that a card whose family is gone says so."""
    cards = {path.name for path in cards_of(name)}
    for path in (ROOT / "model_cards").glob("*.md"):
        if path.name not in cards:
            (tmp_path / path.name).symlink_to(path)
    package = f"cardiobench.models.families.{name}"
    gone = card(next(path.stem.replace("__", "/") for path in cards_of(name)))
    for module in [one for one in sys.modules if one == package or one.startswith(f"{package}.")]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    with monkeypatch.context() as patch:
        patch.setattr(plugins, "folder", lambda kind: tmp_path)
        assert f"{name}." not in "".join(card(one).adapter for one in list_models())
        assert len(list_models()) >= 16 and find_card(gone.id) is None
    with pytest.raises(BadModel, match=rf"there is no module {package}"):
        adapter(gone.adapter)


def test_core_tests_do_not_import_tests_of_extensions(root):
    borrowed = re.compile(r"\b(tests|cardiobench)\.(extensions|models\.families)\b")
    found = [
        str(path.relative_to(root))
        for path in sorted((root / "tests").rglob("*.py"))
        if not {"extensions", "families"} & {*path.relative_to(root / "tests").parts} and path != Path(__file__)
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.lstrip().startswith(("from ", "import ")) and borrowed.search(line)
    ]
    assert not found


PARTS = (*(("names", name) for name in NAMES), *(("families", name) for name in FAMILIES))
"""What the sets consist of: argument of `copy_without`, and the name of a folder."""


def covering_sets(parts):
    """Return sets so that for every ordered pair of parts, one set has the first but not the second: 8 sets for 50 parts.

    Each part is in a different selection of half of the sets (Sperner's theorem: no smaller number of sets suffices).
    """
    count = next(count for count in range(2, 64) if comb(count, count // 2) >= len(parts))
    chosen = [*zip(parts, combinations(range(count), count // 2), strict=False)]
    return [tuple(part for part, sets in chosen if number in sets) for number in range(count)]


def test_deleted_sets_distinguish_every_two_parts():
    """Check that the sets distinguish every two parts: if a copy without a set works, it does not need that set."""
    together = covering_sets(PARTS)
    for one in PARTS:
        left = {part for parts in together if one in parts for part in PARTS if part not in parts}
        assert left == {*PARTS} - {one}


def run_without(tmp_path, names=(), **left_out):
    """Check in another process that a copy of the checkout works without some folders."""
    copy = copy_without(names, tmp_path / "copy", **left_out)
    deleted = [*names, *(name for chosen in left_out.values() for name in chosen)]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = run_python("-m", "tests.rest_works", tmp_path / "out", *deleted, cwd=copy, env=environment)
    assert done.returncode == 0 and "without: works" in done.stdout, (done.stdout + done.stderr)[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("parts", covering_sets(PARTS), ids=lambda parts: "+".join(name for _, name in parts)[:40])
def test_rest_works_without_extensions_and_families(tmp_path, parts):
    """Delete half of all; `make test-core` runs the quick tests without any."""
    run_without(tmp_path, **{kind: [name for one, name in parts if one == kind] for kind in ("names", "families")})


DATASETS = [name for name in names_in("hf_datasets") if name not in KEPT]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "ranking"), [(0, "mae"), (1, "dice")], ids=["even", "odd"])
def test_rest_works_without_datasets_and_metrics(tmp_path, first, ranking):
    """Delete half of the datasets, the metrics that no task needs, and one that ranks models.

    Tests that name a deleted dataset are not collected, so that no extension and no family is deleted with them.
    """
    tasks = (*catalog.list_tasks(), *catalog.list_dense_tasks())
    needed = {name for task in tasks for name in metrics_of(catalog.task(task))}
    unused = [name for name in names_in("hf_metrics") if name not in needed]
    assert {"linear_cka", "subgroup_gap"} <= {*unused}
    run_without(tmp_path, datasets=DATASETS[first::2], metrics=[*unused, ranking])


@pytest.mark.parametrize(("place", "name"), [("hf_datasets", "georgia"), ("hf_metrics", "subgroup_gap")])
def test_deleted_folder_is_not_listed_and_the_rest_is(place, name, tmp_path, monkeypatch, capsys):
    """Delete one dataset and one metric from a copy of links; slow tests delete several from a copy of the checkout."""
    before = {"hf_datasets": list_datasets(), "hf_metrics": own_metrics()}
    for home in ("hf_datasets", "hf_metrics", "model_cards"):
        (tmp_path / home).mkdir()
        for path in (ROOT / home).iterdir():
            if (home, path.name) != (place, name):
                (tmp_path / home / path.name).symlink_to(path)
    monkeypatch.setattr(resources, "PACKAGE", tmp_path / "cardiobench")
    after = {"hf_datasets": list_datasets(), "hf_metrics": own_metrics()}
    assert {home: {*before[home]} - {*after[home]} for home in before} == {
        home: {name} if home == place else set() for home in before
    }
    assert main(["list"]) == 0 and f" {name}:" not in capsys.readouterr().out


def test_tests_that_use_a_deleted_folder_are_not_collected(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.without_extensions.deleted", lambda: frozenset({"georgia"}))
    names_deleted.cache_clear()
    for text, left_out in (
        ("open_dataset('georgia')", True),
        ("task = 'georgia/cd'", True),
        ("georgian = 'not_georgia'", False),
        ("from tests.faults import releases", True),
        ("from tests.faults.releases import Place", True),
        ("from tests.skips import unlisted_skips", False),
    ):
        file = tmp_path / f"test_{left_out}_{len(text)}.py"
        file.write_text(text)
        assert names_deleted(file) == left_out, text
    names_deleted.cache_clear()
