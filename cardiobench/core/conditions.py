"""Conditions of a run as texts: `NAME` or `NAME=VALUE`, joined by full stops in variants and in the facts of models."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType

from cardiobench.core import extensions

_SPELLING = re.compile(r"(\w+)(?:=([\w,+-]+))?", re.ASCII)


@dataclass(frozen=True)
class Condition:
    """Named change of recordings or predictions.

    Attributes:
        label: Its text, `NAME` or `NAME=VALUE`.
        name: Name in the manifest of an extension (`Extension.conditions`).
        value: Text after `=`; empty for none.
    """

    label: str
    name: str
    value: str

    @property
    def installed(self) -> bool:
        """Whether an installed extension has a condition of this name."""
        return self.name in extensions.contributions("conditions")

    @property
    def module(self) -> ModuleType:
        """Module that the manifest names; raises `KeyError` if the condition is not installed."""
        module: ModuleType = extensions.resolve(extensions.contributions("conditions")[self.name])
        return module

    @property
    def of_input(self) -> bool:
        """Whether the condition is installed and changes the recordings in training and test."""
        return self.installed and hasattr(self.module, "model")


def parse_condition(text: str) -> Condition | None:
    """Return the condition that a text spells; None for another text.

    >>> parse_condition("size=2,4")
    Condition(label='size=2,4', name='size', value='2,4')
    """
    spelled = _SPELLING.fullmatch(text)
    return Condition(text, spelled[1], spelled[2] or "") if spelled else None


def join_parts(parts: Iterable[str]) -> str:
    """Return the parts of a variant, such as labels of conditions, as one text; empty ones are left out."""
    return ".".join(filter(None, parts))


def split_parts(text: str) -> list[str]:
    """Return the parts of a variant, or of a model's conditions.

    >>> split_parts("full.size=2"), split_parts("")
    (['full', 'size=2'], [])
    """
    return text.split(".") if text else []


def installed_condition(text: str) -> Condition | None:
    """Return the condition that a part of a variant spells if an extension has it; None for any other part."""
    found = parse_condition(text)
    return found if found and found.installed else None
