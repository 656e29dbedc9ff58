"""Mutations of the code: places in its syntax trees with replacement expressions, and their selection."""

import ast
import copy
import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("scoring", "protocols", "data", "runner", "hub", "results", "tasks", "stats", "extensions")
SEED = 0
OTHER: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "mean": "median",
    "argmax": "argmin",
    "argmin": "argmax",
}
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
NO_CODE = ("annotation", "returns", "decorator_list", "type_params")
"""Fields of the syntax tree that compute nothing."""

Mutation = tuple[ast.AST, str, ast.expr, Callable[[], ast.expr]]
"""Place, description, expression, and function that makes the replacement."""
Place = tuple[str, int]
"""File, and index of a mutation in this file."""


def mutations(tree: ast.AST) -> Iterator[Mutation]:
    """Yield every mutation of a tree in a fixed order."""
    for name, child in ast.iter_fields(tree):
        if name in NO_CODE:
            continue
        for node in child if isinstance(child, list) else [child]:
            if isinstance(node, ast.AST):
                yield from _of_node(node)
                yield from mutations(node)


def _of_node(node: ast.AST) -> Iterator[Mutation]:
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OTHER:
        yield node, _words(node, "op"), node, lambda: _with(node, op=OTHER[type(node.op)]())
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER:
        yield node, _words(node, "ops"), node, lambda: _with(node, ops=[OTHER[type(node.ops[0])](), *node.ops[1:]])
    elif isinstance(node, ast.If | ast.IfExp) and not isinstance(node.test, ast.Compare | ast.BoolOp):
        yield node, _words(node, "test"), node.test, lambda: ast.UnaryOp(ast.Not(), copy.deepcopy(node.test))
    elif isinstance(node, ast.Constant) and isinstance(value := node.value, int | float):
        other = not value if isinstance(value, bool) else value + 1
        yield node, _words(node, "value"), node, lambda: ast.Constant(other)
    elif isinstance(node, ast.Return) and node.value and not isinstance(node.value, ast.Constant):
        yield node, _words(node, "value"), node.value, lambda: ast.Constant(None)
    elif isinstance(node, ast.Call):
        field = {ast.Name: "id", ast.Attribute: "attr"}.get(type(node.func), "")
        if field and (name := getattr(node.func, field)) in NAMES:
            yield (
                node,
                _words(node.func, field),
                node,
                lambda: _with(node, func=_with(node.func, **{field: NAMES[name]})),
            )


def _words(node: ast.AST, field: str) -> str:
    return f"{type(node).__name__}.{field}"


def _with(node: ast.expr, **fields: object) -> ast.expr:
    """Return a copy of an expression with changed fields."""
    other = copy.deepcopy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


@cache
def named() -> dict[str, Place]:
    """Return every mutation by name, except those in statements of a version.

    A name has the file, the function, the description, the text of the line, and a number among equal ones, so that a change
    of other code does not change it.
    """
    found: dict[str, Place] = {}
    for path in sorted(path for name in PACKAGES for path in (ROOT / "cardiobench" / name).rglob("*.py")):
        source, file = path.read_text("utf-8"), path.relative_to(ROOT).as_posix()
        tree, lines = ast.parse(source), source.splitlines()
        equal: Counter[str] = Counter()
        for number, (node, words, *_) in enumerate(mutations(tree)):
            line: int = node.lineno  # type: ignore[attr-defined]
            if not lines[line - 1].startswith(("VERSION", "SCHEMA", "RULES")):
                name = f"{file} {_function(tree, line)} {words} {lines[line - 1].strip()}"
                equal[name] += 1
                found[f"{name} {equal[name]}"] = file, number
    return found


def _function(tree: ast.Module, line: int) -> str:
    """Return the dotted name of the innermost function or class at a line; empty for a statement of the module."""
    parts, body = [], tree.body
    while inner := next(
        (one for one in body if isinstance(one, SCOPES) and one.lineno <= line <= (one.end_lineno or line)), None
    ):
        parts.append(inner.name)
        body = inner.body
    return ".".join(parts)


def described(name: str) -> dict[str, object]:
    """Return line and description of a mutation."""
    file, number = named()[name]
    source = (ROOT / file).read_text("utf-8")
    node, words, *_ = list(mutations(ast.parse(source)))[number]
    line: int = node.lineno  # type: ignore[attr-defined]
    return {
        "outcome": "no test",
        "by": "",
        "seconds": 0.0,
        "undetected": [],
        "file": file,
        "line": line,
        "what": words,
        "code": source.splitlines()[line - 1].strip(),
    }


def draw(count: int) -> list[str]:
    """Return the names of this many mutations; the same code gives the same selection."""
    return random.Random(SEED).sample([*named()], count)
