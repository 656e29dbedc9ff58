"""Options of protocols by name, as the command line gives them: `representation.refit=true`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from cardiobench.core.errors import CardioBenchError
from cardiobench.core.registry import unknown_name

OWN_FLAGS = {"seed": "--seed", "profile": "--profile", "grids": "--grids", "classifiers": "--classifiers"}

Made = TypeVar("Made")


def read_options(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Protocol -> option -> value, from texts `protocol.option=value`; a value is JSON, or a word.

    Raises:
        CardioBenchError: a text of another form.

    >>> read_options(["representation.refit=true", "cross_validation.search=flat"])
    {'representation': {'refit': True}, 'cross_validation': {'search': 'flat'}}
    """
    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        protocol, dot, option = name.partition(".")
        if not (equals and dot and protocol and option):
            raise CardioBenchError(
                f"--option {text}: expected PROTOCOL.OPTION=VALUE, such as representation.refit=true."
            )
        try:
            found.setdefault(protocol, {})[option] = json.loads(value)
        except json.JSONDecodeError:
            found.setdefault(protocol, {})[option] = value
    return found


def with_options(made: Made, chosen: Mapping[str, Any]) -> Made:
    """A protocol with other values of some of its options.

    Raises:
        UnknownName: it has no such option.
        CardioBenchError: the option has a flag of its own, or takes other values.
    """
    hints = get_type_hints(type(made))
    known = [field.name for field in fields(made)]
    values = {}
    for option, value in chosen.items():
        if option not in known:
            raise unknown_name(f"option of {made.name}", option, known)
        if option in OWN_FLAGS:
            raise CardioBenchError(f"{made.name}.{option} has a flag of its own: {OWN_FLAGS[option]}.")
        values[option] = value = _tuples(value)
        if not fits(value, hints[option]):
            usual = json.dumps(getattr(made, option))
            raise CardioBenchError(
                f"--option {made.name}.{option}={json.dumps(value)}: expected {in_words(hints[option])}, such as {usual}."
            )
    return replace(made, **values)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type; numbers are above 0 in every option there is."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(fits(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        kinds = [inner[0]] * len(value) if inner[1:] == (...,) else inner
        return len(value) == len(kinds) and all(map(fits, value, kinds))
    if hint in (int, float):
        return isinstance(value, int | hint) and not isinstance(value, bool) and 0 < value < float("inf")
    return isinstance(value, hint)


def in_words(hint: Any) -> str:
    """A type, for a person."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType, Literal):
        return " or ".join(in_words(one) if origin is not Literal else json.dumps(one) for one in inner)
    if origin is tuple:
        return f"a list of {in_words(inner[0])}"
    plain = {bool: "true or false", int: "a whole number above 0", float: "a number above 0", str: "a word"}
    return {**plain, NoneType: "null"}.get(hint, "something else")


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
