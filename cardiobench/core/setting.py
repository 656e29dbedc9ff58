"""Building blocks of settings fields: metadata for the command line, types with limits, and parsers of text values."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from cardiobench.core.errors import BadConfig

WHAT, DATA, HOW, EXTERNAL = GROUPS = (
    "what to evaluate",
    "data",
    "how to run",
    "predictions and embeddings from elsewhere",
)


@dataclass(frozen=True)
class Setting:
    """Metadata of a settings field: its help text, the spelling of its flag, and whether a settings file may set it.

    Attributes:
        help: Short description; the default is appended.
        group: Heading in the help, one of `GROUPS`.
        metavar: Placeholder of the value.
        flag: Name of the flag without dashes, if it differs from the field's name.
        in_file: Whether a settings file may set it, or a function that decides by the value. False for settings that
            run code, use the network, write outside the results folder or publish, because a file may come from
            somebody else.
    """

    help: str
    group: str
    metavar: str | None = None
    flag: str = ""
    in_file: bool | Callable[[Any], bool] = field(kw_only=True)


def code_location(model: str) -> tuple[str, str] | None:
    """Return location and attribute of a model given as `module:Class` or `file.py:Class`, else None."""
    location, colon, attribute = model.rpartition(":")
    return (location, attribute) if colon and location and attribute.isidentifier() else None


def names_no_code(models: Sequence[str]) -> bool:
    """Return whether none of these models is the user's own Python code."""
    return not any(map(code_location, models))


def parse_options(value: Any) -> Any:
    """Parse protocol options from texts `protocol.option=value`, each value JSON or a word; mappings are returned unchanged.

    >>> parse_options(["probe.refits=2", "zero_shot.share=0.5"])
    {'probe': {'refits': 2}, 'zero_shot': {'share': 0.5}}
    """
    if not isinstance(value, (list, tuple)) or not all(isinstance(text, str) for text in value):
        return value
    options: dict[str, dict[str, Any]] = {}
    for text in value:
        name, equals, word = text.partition("=")
        protocol, dot, option = name.partition(".")
        if not (equals and dot and protocol and option):
            raise ValueError(f"'{text}' is not PROTOCOL.OPTION=VALUE, such as probe.refits=20")
        options.setdefault(protocol, {})[option] = _json_or_word(word)
    return options


def check_backend(value: str) -> str:
    """Return a backend for parallel cells after checking its form."""
    if not re.fullmatch(r"loky|ray|dask(=.+)?", value):
        raise ValueError(f"no backend '{value}'. Give loky, ray, or dask=tcp://HOST:PORT")
    return value


def parse_facts(value: Any) -> Any:
    """Parse facts from texts `key=value`, each value JSON or a word; mappings are returned unchanged.

    >>> parse_facts(["fs=500", 'leads=["II", "V1"]', "layout=time_first"])
    {'fs': 500, 'leads': ['II', 'V1'], 'layout': 'time_first'}
    """
    if not isinstance(value, (list, tuple)) or not all(isinstance(text, str) for text in value):
        return value
    facts: dict[str, Any] = {}
    for text in value:
        key, equals, word = text.partition("=")
        if not (equals and key):
            raise ValueError(f"'{text}' is not KEY=VALUE, such as fs=500")
        facts[key] = _json_or_word(word)
    return facts


def _json_or_word(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


Name = Annotated[str, Field(min_length=1)]
# A single name is accepted as a list of one.
Names = Annotated[tuple[Name, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]
MOST = 10**9
MOST_RESAMPLES = 10**6
MOST_PROCESSES = 512
Positive = Annotated[int, Field(ge=1, le=MOST)]
Resamples = Annotated[int, Field(ge=1, le=MOST_RESAMPLES)]
Processes = Annotated[int, Field(ge=1, le=MOST_PROCESSES)]
ProcessesOrNone = Annotated[int, Field(ge=0, le=MOST_PROCESSES)]
"""A number of processes; 0 runs in this process."""
Device = Literal["auto", "cpu", "cuda", "mps"]
Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]
Options = Annotated[Mapping[str, Mapping[str, Any]], BeforeValidator(parse_options)]
Facts = Annotated[Mapping[str, Any], BeforeValidator(parse_facts)]


_ACCEPTED = {
    "greater_than_equal": "a number of at least {ge:,}",
    "less_than_equal": "a number of at most {le:,}",
    "greater_than": "a number above {gt:g}",
    "int_parsing": "a whole number",
    "float_parsing": "a number",
    "bool_parsing": "true or false",
    "string_too_short": "a non-empty text",
    "literal_error": "{expected}",
}
"""Type of a validation error -> accepted values, with placeholders of its context."""


def invalid_value(error: Mapping[str, Any]) -> str:
    """Return the end of a message about an entry of `ValidationError.errors()`, to follow the name of the setting."""
    context = error.get("ctx", {})
    if error["type"] == "value_error":  # The message names the value.
        return f": {context['error']}"
    accepted = _ACCEPTED.get(error["type"])
    return f" {error['input']!r}: {'expected ' + accepted.format(**context) if accepted else error['msg']}"


def check_draws(resamples: int, seed: int) -> None:
    """Check the number of bootstrap resamples and the seed.

    Raises:
        BadConfig: One of them is out of range.
    """
    for name, value, low, high in (("resamples", resamples, 1, MOST_RESAMPLES), ("seed", seed, 0, 2**32 - 1)):
        if isinstance(value, bool) or not isinstance(value, Integral) or not low <= value <= high:
            raise BadConfig(f"{name} {value!r:.60}: expected a whole number from {low} to {high:,}")
