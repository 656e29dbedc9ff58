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


ARROW = re.compile(r"(?:Return|Yield) [\w ]+ -> ")
PAGES = ("*.md", "docs/*.md", "cardiobench/extensions/*/docs.md", "hf_datasets/*/README.md", "hf_metrics/*/README.md",
         "model_cards/*.md", "tests/samples/README.md")  # fmt: skip


@pytest.fixture(scope="module")
def sources(root):
    """Return a mapping from path to source of the package, the datasets, the metrics, the benchmarks and the tests."""
    folders = (root / name for name in ("cardiobench", "hf_datasets", "hf_metrics", "benchmarks", "tests"))
    return {path: path.read_text(encoding="utf-8") for path in chain(*(folder.rglob("*.py") for folder in folders))}


def test_messages_separate_what_is_and_what_is_expected(sources):
    """A comma joins two sentences in "the mask has the label 7, expected 0 to 3"."""
    splice = ", expected "
    trees = {path: ast.parse(source) for path, source in sources.items() if splice in source and path != Path(__file__)}
    constants = [
        (str(path), node.value) for path, tree in trees.items() for node in ast.walk(tree) if type(node) is ast.Constant
    ]
    assert not [
        (path, text)
        for path, text in constants
        if isinstance(text, str) and splice in text and not re.search(r"\n|^\|", text)
    ]


def test_shapes_are_sentences_of_their_own(sources):
    first_lines = [(str(path), line) for path, source in sources.items() for line in FIRST_LINE.findall(source)]
    assert len(first_lines) > 3000
    assert not [(path, line) for path, line in first_lines if HANGING.fullmatch(line)]


def test_attributes_are_not_described_by_their_name(sources):
    found = [(str(path), match) for path, source in sources.items() for match in RESTATED.findall(source)]
    assert not [(path, name) for path, (name, noun) in found if name.lower() == noun.lower()]


def test_mappings_are_described_in_words(sources):
    """A docstring such as "Return split -> ids" is read twice."""
    first_lines = [(str(path), line) for path, source in sources.items() for line in FIRST_LINE.findall(source)]
    assert not [(path, line) for path, line in first_lines if ARROW.match(line)]


def test_pages_comments_and_messages_have_no_private_words(root, sources):
    pages = {page: page.read_text(encoding="utf-8") for pattern in PAGES for page in root.glob(pattern)}
    texts = {**pages, **sources}
    del texts[Path(__file__)]
    assert len(pages) > 60 and not [
        (str(path), found) for path, text in texts.items() if (found := PRIVATE.findall(text))
    ]


def test_names_of_tests_do_not_list_their_parts(root):
    names = [
        name
        for path in (root / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.M)
    ]
    assert not [name for name in names if re.search(r"_and_\w+_and_(?!white)", name)]
