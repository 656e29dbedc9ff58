"""Find patterns of words that make messages, docstrings and names of tests hard to read."""

import ast
import re
from itertools import chain
from pathlib import Path

import pytest

TYPE = r"(?:bool|u?int\d+|float\d+|complex\d+|texts|objects)"
SHAPE = rf"(?:{TYPE} )?\([A-Za-z_0-9*+ ]+(?:, [A-Za-z_0-9*+ ]+)*,?\)"
HANGING = re.compile(rf"[^,]+, (?:shape )?{SHAPE}(?: (?:{TYPE}|each))?\.$")
"""A docstring such as "Return the split of each patient, texts (n,).", whose reader takes the shape for that of the last noun."""

FIRST_LINE = re.compile(r'^ *"""(.+?)(?:"""|\n)', re.MULTILINE)
RESTATED = re.compile(r"^ +(\w+): (?:The |A |An )?(\w+)\.$", re.MULTILINE)
PRIVATE = re.compile(r"\b(?:goals?|survived|survivors?|layers of HOUSE)\b", re.IGNORECASE)


@pytest.fixture(scope="module")
def sources(root):
    """Return a mapping from path to source of the package, the datasets and the metrics."""
    folders = (root / name for name in ("cardiobench", "hf_datasets", "hf_metrics"))
    return {path: path.read_text(encoding="utf-8") for path in chain(*(folder.rglob("*.py") for folder in folders))}


def test_messages_separate_what_is_and_what_is_expected(sources):
    """A comma joins two sentences in "the mask has the label 7, expected 0 to 3"."""
    splice = ", expected "
    trees = {path: ast.parse(source) for path, source in sources.items() if splice in source}
    constants = [
        (str(path), node.value) for path, tree in trees.items() for node in ast.walk(tree) if type(node) is ast.Constant
    ]
    assert not [
        (path, text) for path, text in constants if isinstance(text, str) and splice in text and "\n" not in text
    ]


def test_shapes_are_sentences_of_their_own(sources):
    first_lines = [(str(path), line) for path, source in sources.items() for line in FIRST_LINE.findall(source)]
    assert len(first_lines) > 3000
    assert not [(path, line) for path, line in first_lines if HANGING.fullmatch(line)]


def test_attributes_are_not_described_by_their_name(sources):
    found = [(str(path), match) for path, source in sources.items() for match in RESTATED.findall(source)]
    assert not [(path, name) for path, (name, noun) in found if name.lower() == noun.lower()]


def test_pages_have_no_private_words(root):
    pages = [*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("cardiobench/extensions/*/docs.md")]
    assert not [(page.name, PRIVATE.findall(page.read_text("utf-8"))) for page in pages if _private(page)]


def _private(page: Path) -> bool:
    return bool(PRIVATE.search(page.read_text(encoding="utf-8")))


def test_names_of_tests_do_not_list_their_parts(root):
    names = [
        name
        for path in (root / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.M)
    ]
    assert not [name for name in names if re.search(r"_and_\w+_and_(?!white)", name)]
