"""Options of protocols: fields of their dataclasses, with types and limits checked by pydantic."""

import json
from collections.abc import Mapping
from dataclasses import fields
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError

from cardiobench.core.errors import CardioBenchError
from cardiobench.core.registry import check_names, unknown_name
from cardiobench.core.setting import MOST

Folds = Annotated[int, Field(ge=2, le=MOST)]
"""Number of folds of a cross-validation."""
Repeats = Annotated[int, Field(ge=1, le=1000)]
"""Number of trainings, draws or resamples of a protocol."""
Refits = Annotated[int, Field(ge=0, le=1000)]
"""Number of further fits on redrawn training patients."""
Penalty = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""Weight of the squared coefficients."""


class InFile:
    """Marker in the `Annotated` type of a free-text option that a settings file may set.

    The text runs no code, accesses no host and writes nothing; a file that it names is only read as JSON.
    """


class Named(Protocol):
    """A dataclass with a name."""

    name: ClassVar[str]


Instance = TypeVar("Instance", bound=Named)


def option_types(cls: type) -> dict[str, Any]:
    """Return the type of each option of a protocol's class, limits included."""
    hints = get_type_hints(cls, include_extras=True)
    return {field.name: hints[field.name] for field in fields(cls)}


def in_file(cls: type, option: str) -> bool:
    """Return whether a settings file may set an option: numbers, booleans, choices, and options marked `InFile`.

    Raises:
        UnknownName: There is no such option.
    """
    known = option_types(cls)
    if option not in known:
        raise unknown_name(f"option of {getattr(cls, 'name', cls.__name__)}", option, known)
    return _names_no_place(known[option])


def _names_no_place(hint: Any) -> bool:
    """Return whether no value of a type can name a file, a host or code."""
    if get_origin(hint) is Annotated:
        return InFile in hint.__metadata__ or _names_no_place(get_args(hint)[0])
    if get_origin(hint) is Literal:
        return True
    parts = [part for part in get_args(hint) if part is not Ellipsis]
    return all(map(_names_no_place, parts)) if parts else hint in (int, float, bool, NoneType)


def validated(cls: type[Instance], options: Mapping[str, Any]) -> Instance:
    """Build a protocol from options as Python, JSON or YAML values; lists are accepted as tuples, single words as lists of one.

    Raises:
        UnknownName: The protocol has no such option.
        CardioBenchError: A value has the wrong type, is out of range, or is repeated in a list.
    """
    known = option_types(cls)
    check_names(f"option of {cls.name}", options, known)
    options = {name: _listed(value, known[name]) for name, value in options.items()}
    for option, value in options.items():
        if not _is_json(value):
            raise _refusal(cls, option, value)
    try:
        made = TypeAdapter(cls).validate_json(json.dumps(options), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        option = str(first["loc"][0])
        raise _refusal(cls, option, options[option], first["msg"]) from None
    for option in options:
        _check_list(made, option, known[option])
    return made


def _refusal(cls: type[Named], option: str, value: Any, otherwise: str = "not a value of JSON") -> CardioBenchError:
    """Return the error that names option, value and accepted range, or gives the reason `otherwise` if the type has no range."""
    accepted = _accepted(TypeAdapter(cls).json_schema()["properties"][option])
    default = getattr(cls(), option)
    advice = "Leave it out" if default in (None, ()) else f"Give a value such as {json.dumps(default)}"
    return CardioBenchError(
        f"{cls.name}.{option}={_shown(value)}: {f'expected {accepted}' if accepted else otherwise}. {advice}."
    )


def _is_json(value: Any) -> bool:
    """Return whether a value can be written as JSON: finite numbers, valid texts, lists and mappings."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError):
        return False
    return True


def _shown(value: Any) -> str:
    return json.dumps(value) if _is_json(value) else repr(value)


def _accepted(schema: Mapping[str, Any]) -> str:
    """Return the values that a JSON schema accepts, in words; empty for mappings."""
    if "anyOf" in schema:
        parts = [_accepted(part) for part in schema["anyOf"]]
        return " or ".join(parts) if all(parts) else ""
    words = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if words:
        return " or ".join(filter(None, [", ".join(map(str, words[:-1])), str(words[-1])]))
    if schema.get("type") == "array":
        item = _accepted(schema.get("items") or {})
        return f"a list without repeats, each value {item}" if item else ""
    kind = schema.get("type", "")
    return {"boolean": "true or false", "string": "a text", "null": "null"}.get(kind, "") or _number(kind, schema)


def _number(kind: str, schema: Mapping[str, Any]) -> str:
    """Return the words for a number with its limits; empty for other types."""
    if kind not in ("integer", "number"):
        return ""
    name = "a whole number" if kind == "integer" else "a number"
    if {"minimum", "maximum"} <= schema.keys():
        return f"{name} from {schema['minimum']:,} to {schema['maximum']:,}"
    words = {"minimum": "of at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    limits = [f"{word} {schema[limit]:,}" for limit, word in words.items() if limit in schema]
    return f"{name} {' and '.join(limits)}".rstrip()


def _check_list(made: Named, option: str, hint: Any) -> None:
    """Refuse lists with repeated values, and empty lists unless the default is empty."""
    values = getattr(made, option)
    if get_origin(_bare(hint)) is not tuple:
        return
    text = f"{made.name}.{option}={json.dumps(values)}"
    default = getattr(type(made)(), option)
    if not values and default:
        raise CardioBenchError(f"{text}: the list is empty. Give a value such as {json.dumps(default)}.")
    seen = set()
    for value in values:
        if value in seen:
            raise CardioBenchError(f"{text}: {json.dumps(value)} is repeated. Give each value once.")
        seen.add(value)


def _bare(hint: Any) -> Any:
    """Return a type without its limits."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _listed(value: Any, hint: Any) -> Any:
    return [value] if isinstance(value, str) and get_origin(_bare(hint)) is tuple else value
