"""Test messages about unknown names."""

import doctest

import pytest

from cardiobench.core import registry
from cardiobench.core.errors import UnknownName
from cardiobench.core.registry import check_names, look_up, unknown_name


def test_examples_of_docstrings():
    assert not doctest.testmod(registry).failed


def test_all_unknown_names_are_in_one_message():
    with pytest.raises(UnknownName) as caught:
        check_names("task", ["a/EF", "a/ef", "b/as"], ["a/ef", "bb/as"])
    assert str(caught.value) == "no task 'a/EF'. Did you mean 'a/ef'? No task 'b/as'. Did you mean 'bb/as'?"


def test_known_names_are_listed_once_at_the_end():
    with pytest.raises(UnknownName) as caught:
        check_names("model", ["xyz", "other"], ["lab/vit"])
    assert str(caught.value) == "no model 'xyz'. No model 'other'. Known: lab/vit."


def test_look_up_returns_all_found():
    def find(name):
        if name not in "ab":
            raise unknown_name("letter", name, "ab")
        return name.upper()

    assert look_up(["a", "b"], find) == ["A", "B"]
    with pytest.raises(UnknownName, match="no letter 'c'"):
        look_up(["a", "c"], find)
