"""Mechanical part of plain English: argument lines, first lines of docstrings and comments."""

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
"""First words of a text that lacks the noun it describes."""
CODE = re.compile(r"[^a-z]|[a-z_\d]+[(.=\[_\d]|[a-z]\b|(noqa|type|ruff|pragma|mypy|fmt|https?|write|float\d+|int\d+)\b")
"""Start of a comment that is no sentence: a capital, a quotation, an expression, a directive."""
SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Yields):$")
ARGUMENT = re.compile(r"( +)\**[A-Za-z_][\w, *`]*(?: \([^)]*\))?: (\S.*)")


def docstrings(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if text := ast.get_docstring(node):
                yield text


def argument_texts(docstring: str) -> Iterator[str]:
    """Yield the first line of each description below `Args:` and `Attributes:`."""
    section = ""
    for line in docstring.splitlines():
        if found := SECTION.match(line):
            section = found[1]
        elif section in ("Args", "Attributes") and (found := ARGUMENT.match(line)) and len(found[1]) == 4:
            yield found[2]


def comments(file: Path) -> Iterator[str]:
    """Yield comments; of lines that follow each other the first."""
    last = (-2, -1)
    for token in tokenize.generate_tokens(io.StringIO(file.read_text("utf-8")).readline):
        if token.type == tokenize.COMMENT:
            follows = (token.start[0] - 1, token.start[1]) == last
            last = token.start if token.line.strip().startswith("#") else (-2, -1)
            if not follows and (text := token.string.lstrip("#: ")):
                yield text


def headless(text: str) -> bool:
    return text.split()[0].strip(",.:;") in HEADLESS | {word.capitalize() for word in HEADLESS}


def lower(text: str) -> bool:
    return not CODE.match(text)


def problems(file: Path) -> Iterator[str]:
    product = file.relative_to(ROOT).parts[0] in PRODUCT
    for docstring in docstrings(file):
        first = docstring.splitlines()[0]
        if product and (headless(first) or re.search(r"\bwhat\b", first, re.IGNORECASE)):
            yield f"first line without a head: {first}"
        for text in argument_texts(docstring):
            if headless(text):
                yield f"argument without a head: {text}"
            elif lower(text):
                yield f"argument without a capital: {text}"
    for text in comments(file):
        if lower(text):
            yield f"comment without a capital: {text}"


@pytest.mark.parametrize("folder", sorted({str(file.parent.relative_to(ROOT)) for file in FILES}))
def test_texts_have_a_head_and_a_capital(folder):
    files = [file for file in FILES if file.parent == ROOT / folder]
    found = [f"{file.relative_to(ROOT)}: {problem}" for file in files for problem in problems(file)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('"""Sum.\n\nArgs:\n    x: of the run.\n"""', "argument without a head: of the run."),
        ('"""Sum.\n\nArgs:\n    x: number of rows.\n"""', "argument without a capital: number of rows."),
        ('"""Return what is missing."""', "first line without a head: Return what is missing."),
        ("x = 1  # seconds", "comment without a capital: seconds"),
        ("# so that\n# it is read once\nx = 1", "comment without a capital: so that"),
    ],
)
def test_a_fragment_is_found(tmp_path, monkeypatch, text, problem):
    monkeypatch.setattr("tests.test_language.ROOT", tmp_path)
    (tmp_path / "cardiobench").mkdir()
    file = tmp_path / "cardiobench" / "module.py"
    file.write_text(text, "utf-8")
    assert list(problems(file)) == [problem]
