"""The digest of code follows imports, and nothing else."""

from pathlib import Path

import pytest

from cardiobench.core import source_digest as module
from cardiobench.core.resources import PACKAGE
from cardiobench.core.source_digest import source_digest, source_files

FILES = {
    "__init__.py": "",
    "rule.py": "from typing import TYPE_CHECKING\nfrom cardiobench.maths import mean\nimport numpy\n"
    "if TYPE_CHECKING:\n    from cardiobench.typed import Thing\n",
    "maths/__init__.py": "from cardiobench.maths import deep\n\ndef mean():\n    from cardiobench import lazy\n",
    "maths/deep.py": "import cardiobench.rule\n",
    "lazy.py": "",
    "typed.py": "",
    "report.py": "import cardiobench.rule\n",
}


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "cardiobench"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setattr(module, "PACKAGE", folder)
    yield folder
    forget()


def forget():
    module.import_statements.cache_clear()
    module._file.cache_clear()


COUNTS = {"rule.py", "maths/__init__.py", "maths/deep.py", "lazy.py"}


@pytest.mark.parametrize("edited", sorted({*COUNTS, "typed.py", "report.py"}))
def test_an_edit_counts_where_the_module_imports_it(package, edited):
    forget()
    before = source_digest(package / "rule.py")
    (package / edited).write_text(FILES[edited] + "# edited\n")
    forget()
    assert (source_digest(package / "rule.py") != before) is (edited in COUNTS)


def test_a_class_stands_for_its_file_and_scoring_reaches_no_page():
    from cardiobench.scoring import score

    class Here: ...

    assert Path(__file__) in source_files(Here)
    reached = {path.relative_to(PACKAGE).parts[0] for path in source_files(score)}
    assert {"scoring", "results", "core"} <= reached and not reached & {"report", "hub", "cli", "runner"}


def test_a_package_of_others_is_followed_too(tmp_path):
    """A plug-in's model that imports a neighbour: an edit of the neighbour makes its embeddings again."""
    package = tmp_path / "lab" / "nets"
    package.mkdir(parents=True)
    texts = {"../__init__.py": "", "__init__.py": "", "model.py": "from .deep import a\nfrom lab import wide\n"}
    for name, text in {**texts, "deep.py": "from .. import wide\n", "../wide.py": "", "../alone.py": ""}.items():
        (package / name).write_text(text)
    files = source_files(package / "model.py")
    assert {path.name for path in files} == {"model.py", "deep.py", "wide.py"}
