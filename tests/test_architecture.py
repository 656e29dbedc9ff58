"""What the package promises about itself: layers without cycles, a name for one thing, printing in one place."""

import ast
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter

import pytest

from cardiobench.core.resources import PACKAGE
from cardiobench.metrics.load import load_metric, own_metrics
from cardiobench.results.verdict import Verdict
from cardiobench.tasks.task import list_kinds

FILES = {
    ".".join(("cardiobench", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
TREES = {name: ast.parse(path.read_bytes()) for name, path in FILES.items()}


def imports(name: str) -> set[str]:
    """Return the modules of the package that a module imports; lazy and type-only imports count."""
    found = set()
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in FILES else node.module)
    return {module for module in found if module in FILES} - {name}


def test_no_file_imports_itself_in_a_circle():
    try:
        TopologicalSorter({name: imports(name) for name in FILES}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_a_class_name_occurs_once():
    places = defaultdict(list)
    for name, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_only_the_command_line_and_the_console_write_to_the_screen():
    allowed = ("cardiobench.cli", "cardiobench.core.console")
    for name, tree in TREES.items():
        if name.startswith(allowed):
            continue
        for node in ast.walk(tree):
            written = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
            stream = isinstance(node, ast.Attribute) and node.attr in ("stdout", "stderr")
            own = stream and isinstance(node.value, ast.Name) and node.value.id == "sys"
            assert not (written or own), f"{name}:{node.lineno} writes to the screen"


NAMED = {
    "cardiobench.data": "metrics of tasks that several datasets have",
    "cardiobench.testing.protocol": "toy tasks",
    "cardiobench.protocols": "studies about that number",
    "cardiobench.report.plots": "figures of these studies",
    "cardiobench.report.paper": "tables of the papers",
    "cardiobench.extensions": "studies about that number, and tables of the papers",
    "cardiobench.runner.best_classifier": "tables of the papers",
    "cardiobench.leaderboard.verify": "a field of the scores of classes",
    "cardiobench.scoring.floor_table": "published numbers",
    "cardiobench.report.page.naming": "decision threshold behind the sensitivity",
    "cardiobench.scoring.metrics": "mean area of several labels, which protocols choose by",
    "cardiobench.stats.information": "statistics of a kind of task",
    "cardiobench.stats.estimates": "areas of the classes of a kind of task",
    "cardiobench.tasks": "formulas of a kind of task",
}
"""Module or package -> why it names numbers of metrics; everything else asks `Number`."""
WORDS = {"chance", "p_value", "bias"}
"""Keys of numbers that are words of other things too."""


def test_numbers_are_named_only_where_the_number_itself_is_meant():
    keys = {key for name in own_metrics() for key in load_metric(name).numbers} - WORDS
    found = [
        f"{name}:{node.lineno} names {node.value}"
        for name, tree in TREES.items()
        if not any(name == place or name.startswith(f"{place}.") for place in NAMED)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in keys
    ]
    assert found == []


KINDS_ASKED = ("cardiobench.tasks", "cardiobench.extensions.reproduction")
"""Packages that may compare the name of a kind: the kinds, and tables of a paper; everything else asks `Task.rules`."""


def test_the_kind_of_a_task_is_asked_in_one_package():
    """A comparison with the name of a kind is one that a kind from elsewhere does not pass."""
    names = set(list_kinds())
    found = [
        f"{name}:{node.lineno}"
        for name, tree in TREES.items()
        if not name.startswith(KINDS_ASKED)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        and any(isinstance(one, ast.Attribute) and one.attr == "kind" for one in ast.walk(node))
        and names & {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}
    ]
    assert found == []


def test_the_text_of_a_verdict_is_written_once():
    texts = {str(verdict) for verdict in Verdict} - {"too few to say"}  # Also an outcome of `compare`.
    found = [
        f"{name}:{node.lineno}"
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in texts and name != "cardiobench.results.verdict"
    ]
    assert found == []


def test_every_public_name_is_documented():
    missing = [
        f"{name}.{node.name}"
        for name, tree in TREES.items()
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
        if not ast.get_docstring(node)
    ]
    assert missing == []
