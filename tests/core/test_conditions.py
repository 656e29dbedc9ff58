"""Test the texts of conditions, which settings, results, leaderboards and the Hub share."""

import ast

import pytest

from cardiobench.core.conditions import installed_condition, join_parts, parse_condition, split_parts
from cardiobench.core.extensions import Extension
from tests.architecture import nodes


def test_parts_are_joined_and_split():
    assert join_parts(["", "full", "", "leads=I,II"]) == "full.leads=I,II"
    assert split_parts("full.leads=I,II") == ["full", "leads=I,II"] and split_parts("") == []
    assert split_parts("full..leads=I") == ["full", "", "leads=I"], "a submitted variant is not repaired"


@pytest.mark.parametrize("text", ["", "leads=", "=I", "leads=I.II", "leads = I", "leads=a=b", "lé", "a/b"])
def test_other_texts_are_no_conditions(text):
    assert parse_condition(text) is None


def test_condition_has_a_module_if_it_is_installed(monkeypatch):
    manifest = {"toy": Extension(conditions={"louder": "json"})}
    monkeypatch.setattr("cardiobench.core.extensions.extensions", lambda: manifest)
    found = installed_condition("louder=2")
    assert (found.label, found.name, found.value) == ("louder=2", "louder", "2")
    assert found.module.__name__ == "json" and not found.of_input
    assert installed_condition("quieter=2") is None


def test_only_one_module_reads_the_texts_of_conditions():
    """The command line also lists the names, and the settings suggest one for a misspelled name."""
    asked = {
        name
        for name, node in nodes(ast.Call)
        if ast.unparse(node.func).endswith("contributions")
        and any(isinstance(one, ast.Constant) and one.value == "conditions" for one in node.args)
    }
    assert asked == {"cardiobench.cli.eval", "cardiobench.core.conditions", "cardiobench.runner.condition"}
