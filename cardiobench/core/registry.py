"""Lookup of names, with suggestions for unknown names."""

import difflib
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

from cardiobench.core.errors import UnknownName, first_n

Item = TypeVar("Item")
Found = TypeVar("Found")
_SHOWN = 60  # Characters shown of an unknown name.


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant.

    That is the prefix match nearest in length, else the only name with this part behind its `/`, else the most similar
    name, else the name with the most similar part.

    >>> nearest("output", ["out", "output-dir"]), nearest("models", ["model", "models-dir"]), nearest("xyz", ["abc"])
    ('output-dir', 'model', None)
    >>> nearest("panecho", ["CarDS-Yale/PanEcho", "vuno/ST-MEM"]), nearest("ef", ["camus/ef", "echonet/ef"])
    ('CarDS-Yale/PanEcho', None)
    """
    by_lower = {candidate.lower(): candidate for candidate in sorted(known)}
    given = name.lower()
    near = [one for one in by_lower if one.startswith(given) or (given.startswith(one) and 2 * len(one) > len(given))]
    near = sorted(near, key=lambda one: abs(len(one) - len(given))) if len(name) > 2 else []
    owners = defaultdict(list)
    for one in by_lower if "/" not in given else ():
        owners[one.rpartition("/")[2]].append(one)
    by_part = {part: ones[0] for part, ones in owners.items() if len(ones) == 1}
    near = near or [by_part[part] for part in (given,) if part in by_part]
    near = near or difflib.get_close_matches(given[:200], by_lower, n=1, cutoff=0.6)
    near = near or [by_part[part] for part in difflib.get_close_matches(given[:200], by_part, n=1, cutoff=0.6)]
    return by_lower[near[0]] if near else None


def check_text(kind: str, name: object) -> str:
    """Return a name after checking that it is a string.

    Raises:
        UnknownName: It is not a string.
    """
    if not isinstance(name, str):
        raise UnknownName(
            f"{name!r:.100} is not a valid name of a {kind}: expected a string, got {type(name).__name__}."
        )
    return name


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownName:
    """Return the error for an unknown `name` of a `kind`, with the most similar known name.

    Raises:
        UnknownName: The name is not a string.

    >>> print(unknown_name("task", "camus/EF", ["camus/ef", "tmed2/as"]))
    no task 'camus/EF'. Did you mean 'camus/ef'?
    """
    name, known = check_text(kind, name), sorted(known)
    near = nearest(name, known)
    hint = f"Did you mean '{near}'?" if near else f"Known: {first_n(known, 50) or 'none'}."
    shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}... ({len(name)} characters)"
    return UnknownName(f"no {kind} '{shown}'.", hint)


def look_up(names: Iterable[Item], find: Callable[[Item], Found]) -> list[Found]:
    """Return `find(name)` for each name, or for other items that contain names.

    Raises:
        UnknownName: Some names are unknown; the message has all of them, with each hint only once.

    >>> look_up(["camus/EF", "tmed/as"], lambda name: check_names("task", [name], ["camus/ef", "tmed2/as"]))
    Traceback (most recent call last):
    cardiobench.core.errors.UnknownName: no task 'camus/EF'. Did you mean 'camus/ef'? No task 'tmed/as'. Did you mean 'tmed2/as'?
    """
    found: list[Found] = []
    parts: list[str] = []
    for name in names:
        try:
            found.append(find(name))
        except UnknownName as error:
            parts += map(str, error.args)
    if parts:
        first, *others = reversed(dict.fromkeys(reversed(parts)))
        raise UnknownName(first, *(f"{part[0].upper()}{part[1:]}" for part in others))
    return found


def check_names(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse unknown names.

    Raises:
        UnknownName: Some names are unknown; the message has all of them.
    """
    known = sorted(known)

    def check(name: str) -> None:
        if name not in known:
            raise unknown_name(kind, name, known)

    look_up(names, check)
