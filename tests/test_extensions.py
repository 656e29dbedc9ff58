"""Check that each folder below cardiobench/extensions can be deleted with its tests, and the rest still works."""

import ast
import os
import re
import subprocess
import sys
from itertools import combinations
from math import comb
from pathlib import Path
from types import SimpleNamespace

import pytest

from cardiobench.core import plugins
from cardiobench.core.errors import BadConfig
from cardiobench.core.extensions import Extension, contributions, extensions
from cardiobench.protocols import protocol_class
from cardiobench.protocols.base import BaseProtocol
from cardiobench.testing import check_extension
from tests.without_extensions import copy_without, own_extensions

NAMES = own_extensions()
# Words with other meanings: a loss of information, a row of a table, a heading, a layer of a network.
COMMON_WORDS = {
    *(
        "alignment",
        "choose",
        "confound",
        "dense",
        "leads",
        "representation",
        "retrieval",
        "reuse",
        "stress",
        "study",
        "transfer",
    ),
}


@pytest.mark.parametrize("name", NAMES)
def test_every_extension_passes_its_contract(name, monkeypatch):
    """tests/contracts/test_protocols.py checks its protocols with small settings, as all registered ones."""
    checked = []
    monkeypatch.setattr("cardiobench.testing.extension.check_protocol", checked.append)
    check_extension(name)
    assert checked == [*extensions()[name].protocols]


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
        if "extensions" not in path.relative_to(root / "cardiobench").parts:
            yield path


WORD_OF = {ast.Name: "id", ast.Attribute: "attr", ast.Constant: "value"}
"""Mapping from type of syntax node to its attribute that may be a name."""


def test_core_code_names_no_extension(root):
    """Check identifiers and strings for names of extensions, their protocols and conditions.

    Docstrings and help texts may mention these names.
    """
    brought = [protocol_class(name) for name in contributions("protocols")]
    conditions = {one.condition for one in brought} - {BaseProtocol.condition}
    named = {*NAMES, *(one.name for one in brought), *conditions} - COMMON_WORDS
    found = []
    for path in core_files(root):
        text = path.read_text(encoding="utf-8")
        if not any(name in text for name in named):
            continue
        for node in ast.walk(ast.parse(text)):
            word = getattr(node, WORD_OF.get(type(node), ""), None)
            if isinstance(word, str) and word in named:
                found.append(f"{path.relative_to(root)}:{node.lineno}: {word}")
    assert not found


def test_core_tests_do_not_import_tests_of_extensions(root):
    borrowed = re.compile(r"\b(tests|cardiobench)\.extensions\b")
    found = [
        str(path.relative_to(root))
        for path in sorted((root / "tests").rglob("*.py"))
        if "extensions" not in path.relative_to(root / "tests").parts and path != Path(__file__)
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.lstrip().startswith(("from ", "import ")) and borrowed.search(line)
    ]
    assert not found


def covering_sets(names):
    """Return sets so that for every ordered pair of names, one set has the first but not the second: 7 sets for 35 folders.

    Each name is in a different selection of half of the sets (Sperner's theorem: no smaller number of sets suffices).
    """
    count = next(count for count in range(2, 64) if comb(count, count // 2) >= len(names))
    chosen = [*zip(names, combinations(range(count), count // 2), strict=False)]
    return [tuple(name for name, sets in chosen if number in sets) for number in range(count)]


def test_deleted_sets_distinguish_every_two_extensions():
    """Check that the sets distinguish every two folders: if a set suffices, folders outside it are not needed."""
    together = covering_sets(NAMES)
    for one in NAMES:
        left = {name for names in together if one in names for name in NAMES if name not in names}
        assert left == {*NAMES} - {one}


@pytest.mark.slow
@pytest.mark.parametrize("names", covering_sets(NAMES), ids=lambda names: "+".join(names)[:40])
def test_core_works_without_an_extension(tmp_path, names):
    """Delete some extensions; `make test-core` runs the quick tests without any."""
    copy = copy_without(names, tmp_path / "copy")
    env = {**os.environ, "PYTHONPATH": str(copy), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    line = [sys.executable, "-m", "tests.rest_works", str(tmp_path / "out"), *names]
    done = subprocess.run(line, cwd=copy, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "without: works" in done.stdout
