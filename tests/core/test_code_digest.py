"""Check that the digest of user code depends on behaviour and imported local modules, but not on formatting."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from cardiobench.core.code_digest import code_digest, local_files

SOURCE = '''
"""A module."""
import helper

LIMIT = 3  # a limit
"""Of something."""


class Mine:
    """A class."""

    def run(self, x: int) -> int:
        """Run it."""
        return helper.twice(x) if x > 2 else [x, -1, None, "text", b"b", 1.5, ...][0]
'''


@pytest.fixture
def script(tmp_path) -> Path:
    (tmp_path / "helper.py").write_text("def twice(x):\n    return 2 * x\n")
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# a limit", "# another comment"),
        ('"""A class."""', '"""Another docstring,\n    of two lines."""'),
        ('"""A class."""\n', ""),
        ('"""Of something."""', ""),
        ("helper.twice(x) if", "(helper.twice(\n            x)) if"),
        ('"text"', "'text'"),
        ("LIMIT = 3", "LIMIT = 0x3"),
    ],
)
def test_comments_docstrings_and_formatting_do_not_change_the_digest(script, old, new):
    before = code_digest(script)
    assert old in SOURCE
    script.write_text(SOURCE.replace(old, new))
    assert code_digest(script) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("x > 2", "x >= 2"),
        ("x: int", "x: str"),
        ("-1, None", "-1, True"),
        ("-1, None", "-1, ''"),
        ('"text"', '"texts"'),
        ('b"b"', '"b"'),
        ("1.5", "1.25"),
        ("[x, -1", "[-1, x"),
        ("def run", "@staticmethod\n    def run"),
    ],
)
def test_changed_behaviour_changes_the_digest(script, old, new):
    before = code_digest(script)
    assert old in SOURCE
    script.write_text(SOURCE.replace(old, new))
    assert code_digest(script) != before


def test_imported_neighbours_change_the_digest_but_moving_the_script_does_not(script, tmp_path):
    before = code_digest(script)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in ("mine.py", "helper.py"):
        (moved / name).write_text((tmp_path / name).read_text())
    assert code_digest((moved / "mine.py").rename(moved / "ours.py")) == before
    (tmp_path / "helper.py").write_text("def twice(x):\n    return 3 * x\n")
    assert code_digest(script) != before


FILES = {
    "lab/__init__.py": "",
    "lab/model.py": "from typing import TYPE_CHECKING\nfrom .nets.deep import Net\nfrom lab import wide\nimport torch\n"
    "if TYPE_CHECKING:\n    from lab import typed\nelse:\n    from lab import real\n",
    "lab/nets/__init__.py": "from .. import blocks\n",
    "lab/nets/deep.py": "def make():\n    from . import lazy\n",
    "lab/nets/lazy.py": "from ..other import *\n",
    "lab/other.py": "import lab.model\nimport plain.inner.unit\n",
    "lab/blocks.py": "try:\n    import absent_module\nexcept ImportError:\n    import neighbour\n",
    "lab/wide.py": "",
    "lab/real.py": "",
    "lab/typed.py": "",
    "lab/alone.py": "",
    "plain/inner/unit.py": "",  # A package without __init__.py.
    "neighbour.py": "this is no python\n",
}


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    return tmp_path


NOT_IMPORTED = {"lab/typed.py", "lab/alone.py"}


def test_imports_are_followed_anywhere_in_the_code(package):
    found = {str(path.relative_to(package.resolve())) for path in local_files(package / "lab" / "model.py")}
    assert found == FILES.keys() - NOT_IMPORTED


@pytest.mark.parametrize("edited", FILES)
def test_edits_of_an_imported_module_change_the_digest(package, edited):
    before = code_digest(package / "lab" / "model.py")
    with (package / edited).open("a") as file:
        file.write("EDITED = 1\n")
    assert (code_digest(package / "lab" / "model.py") != before) is (edited not in NOT_IMPORTED)


def test_only_the_modules_of_the_users_package_enter_the_digest(package, monkeypatch):
    """Check that packages used by an installed plug-in count as libraries."""
    installed = package / "site-packages"
    for name in ("plug_in/__init__.py", "plug_in/net.py", "library/__init__.py"):
        (installed / name).parent.mkdir(parents=True, exist_ok=True)
        (installed / name).write_text("")
    (installed / "plug_in" / "model.py").write_text("import library\nfrom plug_in import net\nimport numpy\n")
    monkeypatch.syspath_prepend(str(installed))
    found = {path.name for path in local_files(installed / "plug_in" / "model.py")}
    assert found == {"__init__.py", "model.py", "net.py"}
    assert not [path for path in local_files(installed / "plug_in" / "model.py") if "library" in path.parts]


def test_deeply_nested_expression_can_be_digested(tmp_path):
    path = tmp_path / "deep.py"
    path.write_text("x = " + " + ".join(["1"] * 900))
    assert code_digest(path)


TYPED = """
class Base: ...

def helper(x):
    return x + 1

class Mine(Base):
    '''Mine.'''
    scale = 2

    def run(self, x):
        '''Run.'''
        return helper(x) * self.scale + sum(y + 1 for y in [x])
from cardiobench.core.code_digest import code_digest
print(code_digest(Mine))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("'''Run.'''", "'''Another.'''", True),
        ("return x + 1", "return x + 2", False),
        ("scale = 2", "scale = 3", False),
        ("y + 1", "y + 2", False),
    ],
)
def test_interactive_code_is_identified_by_its_bytecode(old, new, same):
    """Test a class defined in a notebook, which has no file."""

    def digest(text: str) -> str:
        return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout

    assert old in TYPED
    assert (digest(TYPED) == digest(TYPED.replace(old, new))) is same
