"""Options of protocols: fields of their dataclasses, with types and limits checked by pydantic."""

import json
from collections.abc import Mapping
from dataclasses import fields
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError

from cardiobench.core.errors import CardioBenchError
from cardiobench.core.registry import unknown_name

Folds = Annotated[int, Field(ge=2)]
"""Number of folds of a cross-validation."""
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
        CardioBenchError: A value has the wrong type or is out of range.
    """
    known = option_types(cls)
    for option in options:
        if option not in known:
            raise unknown_name(f"option of {cls.name}", option, known)
    options = {name: _listed(value, known[name]) for name, value in options.items()}
    try:
        return TypeAdapter(cls).validate_json(json.dumps(options), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        option = str(first["loc"][0])
        default = getattr(cls(), option)
        advice = "Leave it out" if default is None else f"Give a value such as {json.dumps(default)}"
        raise CardioBenchError(
            f"{cls.name}.{option}={json.dumps(options[option])}: {first['msg']}. {advice}."
        ) from None


def _listed(value: Any, hint: Any) -> Any:
    kind = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return [value] if isinstance(value, str) and get_origin(kind) is tuple else value
