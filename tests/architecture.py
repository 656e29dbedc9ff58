"""Syntax trees, imports and measures of the package: `python -m tests.architecture` prints the measures."""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cache
from graphlib import CycleError, TopologicalSorter
from typing import Any

from cardiobench.core.extensions import Extension, extensions
from cardiobench.core.resources import PACKAGE

FILES = {
    ".".join(("cardiobench", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


@cache
def syntax_tree(name: str) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(FILES[name].read_bytes())


@cache
def nodes_by_type(name: str) -> dict[type[ast.AST], list[Any]]:
    """Return a mapping from type to all nodes of that type in a module."""
    found = defaultdict(list)
    for node in ast.walk(syntax_tree(name)):
        found[type(node)].append(node)
    return found


def nodes(kind: type[ast.AST]) -> Iterator[tuple[str, Any]]:
    """Yield each node of a type with the name of its module."""
    for name in FILES:
        for node in nodes_by_type(name)[kind]:
            yield name, node


def imports(name: str) -> set[str]:
    """Return the modules of the package that a module imports; lazy and type-only imports count."""
    by_type = nodes_by_type(name)
    found = {alias.name for node in by_type[ast.Import] for alias in node.names}
    for node in by_type[ast.ImportFrom]:
        if node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in FILES else node.module)
    return {module for module in found if module in FILES} - {name}


def named_modules(name: str) -> set[str]:
    """Return the modules of the package that a module imports by a string: the text of a call of `import_module`."""
    calls = [node for node in nodes_by_type(name)[ast.Call] if ast.unparse(node.func).endswith("import_module")]
    texts = {one.value for call in calls for one in call.args if isinstance(one, ast.Constant)}
    return {module for module in texts if module in FILES} - {name}


def circle() -> str:
    """Return the modules of a circle of imports, those by a string included; empty without one."""
    try:
        TopologicalSorter({name: imports(name) | named_modules(name) for name in FILES}).prepare()
    except CycleError as error:
        return " -> ".join(error.args[1])
    return ""


def reached(start: str) -> set[str]:
    """Return the modules that a module imports, directly or through others, lazily or not; itself included."""
    found, waiting = set[str](), [start]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += imports(name)
    return found


def callers(attribute: str, within: str) -> set[str]:
    """Return the modules of a package that call an attribute of this name."""
    found = set()
    for name in FILES:
        if name.startswith(within):
            calls = nodes_by_type(name)[ast.Call]
            if any(isinstance(node.func, ast.Attribute) and node.func.attr == attribute for node in calls):
                found.add(name)
    return found


def users_of_fields() -> dict[str, list[str]]:
    """Return a mapping from each field of `Extension` to the extensions of this package that set it."""
    known = extensions().items()
    return {one.name: [name for name, made in known if made.references(one.name)] for one in fields(Extension)}


NOT_ENGINE = (
    "extensions",
    "leaderboard",
    "testing",
    "models.families",
    "models.blocks",
    "models.baselines",
    "data.phantom",
)
"""Packages below `cardiobench` that are not part of the engine."""


def lines(names: Iterable[str]) -> int:
    """Return the number of lines of modules."""
    return sum(len(FILES[name].read_bytes().splitlines()) for name in names)


def measures() -> list[tuple[str, str]]:
    """Return the measures of the architecture in words, with their values."""
    engine = [name for name in FILES if not name.startswith(tuple(f"cardiobench.{one}" for one in NOT_ENGINE))]
    starts = {
        "api": "api",
        "run": "runner.run",
        "score": "scoring.score",
        "probe": "protocols.probe",
        "builder": "data.builder",
    }
    users = users_of_fields()
    tests = [path for path in (PACKAGE.parent / "tests").rglob("*.py")]
    return [
        ("modules that compute cells", ", ".join(sorted(callers("compute", "cardiobench.runner")))),
        (
            "modules that decide whether a cell applies",
            ", ".join(sorted(callers("check", "cardiobench.runner.compute"))),
        ),
        ("circle of imports, those by a string included", circle() or "none"),
        ("lines of the engine", f"{lines(engine):,}"),
        (
            "modules reached from",
            ", ".join(f"{name} {len(reached(f'cardiobench.{one}'))}" for name, one in starts.items()),
        ),
        ("fields of Extension, of them with one user", f"{len(users)}, {sum(len(one) == 1 for one in users.values())}"),
        ("lines of tests", f"{sum(len(path.read_bytes().splitlines()) for path in tests):,}"),
    ]


if __name__ == "__main__":
    for words, value in measures():
        sys.stdout.write(f"{words}: {value}\n")
