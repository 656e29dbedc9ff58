"""Conditions: changes of a protocol's answers that a run asks for, each under a name of its own."""

import re
from dataclasses import dataclass
from types import ModuleType

from cardiobench.core import extensions
from cardiobench.core.config import RunConfig, flag_of
from cardiobench.core.errors import BadConfig
from cardiobench.core.registry import unknown_name

SPELLING = re.compile(r"(\w+)(?:=([\w,+-]+))?", re.ASCII)
"""Spelling of a condition, which becomes part of the variant of a result and of its path."""


@dataclass(frozen=True)
class Condition:
    """A condition of a run.

    Attributes:
        label: `NAME` or `NAME=VALUE`, as a flag has it.
        name: Name in a manifest.
        value: Text after `=`; empty for none.
        module: Module that the manifest names (`Extension.conditions`).
    """

    label: str
    name: str
    value: str
    module: ModuleType


def conditions(config: RunConfig) -> tuple[Condition, ...]:
    """Return the conditions that the settings name, in alphabetical order.

    Raises:
        BadConfig: A condition is not spelled `NAME` or `NAME=VALUE`, or is given twice.
        UnknownName: No installed extension provides a condition of that name.
    """
    found: dict[str, Condition] = {}
    known = extensions.contributions("conditions") if config.conditions else {}
    for text in config.conditions:
        shown = f"{flag_of(RunConfig, 'conditions')} {text!r}"
        if not (spelled := SPELLING.fullmatch(text)):
            raise BadConfig(f"{shown}: expected NAME or NAME=VALUE, of letters, digits, commas, '+', '-' and '_'.")
        name, value = spelled.groups(default="")
        if name not in known:
            raise unknown_name("condition", name, known)
        if name in found:
            raise BadConfig(f"{shown}: '{name}' is given twice. Leave one out, or make two runs.")
        found[name] = Condition(text, name, value, extensions.resolve(known[name]))
    return tuple(found[name] for name in sorted(found))
