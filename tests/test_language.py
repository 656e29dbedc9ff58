"""Check mechanical rules of plain English: argument lines, first lines of docstrings, and comments."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRODUCT = ("cardiobench", "hf_metrics", "hf_datasets")
FILES = [file for name in (*PRODUCT, "tests", "benchmarks") for file in sorted((ROOT / name).rglob("*.py"))]
HEADLESS = frozenset(
    "of in on for from by with to at as its their which what how whose where when who that per between than because only".split()
)
"""First words of a text without a head noun."""
CODE = re.compile(r"[^a-z]|[a-z_\d]+[(.=\[_\d]|[a-z]\b|(noqa|type|ruff|pragma|mypy|fmt|https?|write|float\d+|int\d+)\b")
"""Allowed start of a comment that is not a sentence: capital, quotation, expression or directive."""
SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Yields):$")
ARGUMENT = re.compile(r"( +)\**[A-Za-z_][\w, *`]*(?: \([^)]*\))?: (\S.*)")


def docstrings(node: ast.AST) -> Iterator[str]:
    """Yield the docstrings of a module or statement, skipping expressions, which have none."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        if text := ast.get_docstring(node):
            yield text
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, part, ()):
            yield from docstrings(inner)


def argument_texts(docstring: str) -> Iterator[str]:
    """Yield the first line of each description below `Args:`, `Attributes:` and `Raises:`."""
    section = ""
    for line in docstring.splitlines():
        if found := SECTION.match(line):
            section = found[1]
        elif section in ("Args", "Attributes", "Raises") and (found := ARGUMENT.match(line)) and len(found[1]) == 4:
            yield found[2]


def comments(source: str) -> Iterator[str]:
    """Yield comments; of consecutive lines only the first."""
    last = (-2, -1)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            follows = (token.start[0] - 1, token.start[1]) == last
            last = token.start if token.line.strip().startswith("#") else (-2, -1)
            if not follows and (text := token.string.lstrip("#: ")):
                yield text


def headless(text: str) -> bool:
    return text.split()[0].strip(",.:;") in HEADLESS | {word.capitalize() for word in HEADLESS}


def lower(text: str) -> bool:
    return not CODE.match(text)


def may_be_lower(source: str) -> bool:
    """Tell whether a comment may start without a capital; `#` in a string also counts, so tokens decide afterwards."""
    above = -1
    for line in source.splitlines():
        start = line.lstrip()
        indent = len(line) - len(start) if start.startswith("#") else -1
        if "#" in line and (indent < 0 or indent != above):
            texts = [line[place:].lstrip("#: ") for place, character in enumerate(line) if character == "#"]
            if any(text and lower(text) for text in texts):
                return True
        above = indent
    return False


def problems(file: Path) -> Iterator[str]:
    product = file.relative_to(ROOT).parts[0] in PRODUCT
    source = file.read_text("utf-8")
    for docstring in docstrings(ast.parse(source)):
        first = docstring.splitlines()[0]
        if product and (headless(first) or re.search(r"\bwhat\b", first, re.IGNORECASE)):
            yield f"first line without a head: {first}"
        for text in argument_texts(docstring):
            if headless(text):
                yield f"argument without a head: {text}"
            elif lower(text):
                yield f"argument without a capital: {text}"
    for text in comments(source) if may_be_lower(source) else ():
        if lower(text):
            yield f"comment without a capital: {text}"


@pytest.mark.parametrize("folder", sorted({str(file.parent.relative_to(ROOT)) for file in FILES}))
def test_texts_have_a_head_noun_and_a_capital(folder):
    files = [file for file in FILES if file.parent == ROOT / folder]
    found = [f"{file.relative_to(ROOT)}: {problem}" for file in files for problem in problems(file)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('"""Sum.\n\nArgs:\n    x: of the run.\n"""', "argument without a head: of the run."),
        ('"""Sum.\n\nArgs:\n    x: number of rows.\n"""', "argument without a capital: number of rows."),
        ('"""Sum.\n\nRaises:\n    BadData: it is empty.\n"""', "argument without a capital: it is empty."),
        ('"""Return what is missing."""', "first line without a head: Return what is missing."),
        ("x = 1  # seconds", "comment without a capital: seconds"),
        ("# so that\n# it is read once\nx = 1", "comment without a capital: so that"),
    ],
)
def test_fragments_are_found(tmp_path, monkeypatch, text, problem):
    monkeypatch.setattr("tests.test_language.ROOT", tmp_path)
    (tmp_path / "cardiobench").mkdir()
    file = tmp_path / "cardiobench" / "module.py"
    file.write_text(text, "utf-8")
    assert list(problems(file)) == [problem]
