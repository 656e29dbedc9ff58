"""Options of protocols: the fields of their dataclasses, with the types and limits that pydantic checks."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, ClassVar, Protocol, TypeVar, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError

from cardiobench.core.errors import CardioBenchError
from cardiobench.core.registry import unknown_name

Folds = Annotated[int, Field(ge=2)]
"""Number of folds of a cross-validation."""
Penalty = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""Weight of squared coefficients."""


class Named(Protocol):
    """A dataclass with a name."""

    name: ClassVar[str]


Instance = TypeVar("Instance", bound=Named)


def option_types(cls: type) -> dict[str, Any]:
    """Return the type of each option of a protocol's class, limits included."""
    hints = get_type_hints(cls, include_extras=True)
    return {field.name: hints[field.name] for field in fields(cls)}


def validated(cls: type[Instance], options: Mapping[str, Any]) -> Instance:
    """Build a protocol from options as Python, JSON or YAML give them: lists stand for tuples.

    Raises:
        UnknownName: the protocol has no such option.
        CardioBenchError: a value is of another type or out of range.
    """
    known = option_types(cls)
    for option in options:
        if option not in known:
            raise unknown_name(f"option of {cls.name}", option, known)
    try:
        return TypeAdapter(cls).validate_json(json.dumps(options), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        option = str(first["loc"][0])
        default = json.dumps(getattr(cls(), option))
        raise CardioBenchError(
            f"{cls.name}.{option}={json.dumps(options[option])}: {first['msg']}. Give a value such as {default}."
        ) from None
