"""Messages for callers in Python: arguments in place of flags, and no frames of this package."""

import logging
import re
from collections.abc import Callable
from dataclasses import fields
from functools import cache, wraps
from typing import ParamSpec, TypeVar, get_type_hints

from cardiobench.core.config import RunConfig, ScoreConfig, flag_of
from cardiobench.core.errors import CardioBenchError

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)

COMMAND = re.compile(r"(?:\b(?:cardiobench|pip|hf|dask|ray|accelerate) [a-z](?:(?!\. )[^\n`;)])*)")
"""A command line, whose flags stay flags, up to the end of its sentence or bracket."""
FLAG = re.compile(r"(?<![\w-])--(?P<flag>[a-z][a-z-]*)(?:[ =](?P<value>[^\s`,;()]*[^\s`,;().:]))?")
PLACEHOLDER = re.compile(r"[A-Z][A-Z/_:0-9]*")
NO_VALUES = frozenset(
    "a an and cannot describes does fixes for gives has if instead is names needs nor of or out sets takes the to with yourself".split()
)
"""Words that follow a flag in a sentence and are not its value."""
RENAMED = {"models": "model"}
"""Field -> argument of `evaluate` with another name."""


def as_arguments(text: str) -> str:
    """Return a message with the arguments of the Python functions in place of the flags of the commands.

    >>> as_arguments("Leave --pooling mean out, or continue with --allow-missing.")
    "Leave poolings='mean' out, or continue with allow_missing=True."
    >>> as_arguments("Give its folder with --data-dir. Run: cardiobench list --data-dir DIR")
    'Give its folder with data_dir. Run: cardiobench list --data-dir DIR'
    """
    parts, end = [], 0
    for line in COMMAND.finditer(text):
        parts += [_without_flags(text[end : line.start()]), line[0]]
        end = line.end()
    return "".join([*parts, _without_flags(text[end:])])


def _without_flags(text: str) -> str:
    named = FLAG.sub(_argument, text)
    # Some messages already name the argument behind the flag.
    return re.sub(r"(\w+=True) \((?:in Python )?\1\)", r"\1", re.sub(r"\bflag(s?)\b", r"argument\1", named))


def _argument(match: re.Match[str]) -> str:
    field, is_switch = _arguments().get(match["flag"], ("", False))
    if not field:
        return match[0]
    name, value = RENAMED.get(field, field), match["value"]
    told = value is not None and value not in NO_VALUES
    rest = "" if value is None else f" {value}"
    if is_switch:
        return f"{name}=True{rest}"
    if not told:
        return f"{name}{rest}"
    shown = value if PLACEHOLDER.fullmatch(value) or value.isdigit() else repr(value)
    return f"{name}=[{shown}]" if field == "options" else f"{name}={shown}"


@cache
def _arguments() -> dict[str, tuple[str, bool]]:
    """Return a mapping from flag without dashes to field, and whether it is a switch."""
    return {
        flag_of(kind, one.name).removeprefix("--"): (one.name, get_type_hints(kind)[one.name] is bool)
        for kind in (ScoreConfig, RunConfig)
        for one in fields(kind)
    }


def user_errors(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function whose errors of the user name arguments and end at the caller.

    The frames inside this package do not help the user; logging at level DEBUG keeps them.
    """

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except CardioBenchError as error:
            log.debug("%s", error, exc_info=True)
            error.args = tuple(as_arguments(one) if isinstance(one, str) else one for one in error.args)
            told = error.with_traceback(None)
        raise told from None

    return wrapped
