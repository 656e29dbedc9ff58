"""Names to things, with an answer for the name that is not there."""

import difflib
from collections.abc import Iterable

from cardiobench.core.errors import UnknownName


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownName:
    """Say that no `kind` is called `name`, and which known name is nearest.

    >>> print(unknown_name("task", "camus/EF", ["camus/ef", "tmed2/as"]))
    no task 'camus/EF'. Did you mean 'camus/ef'?
    """
    known = sorted(known)
    by_lower = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    hint = f"Did you mean '{by_lower[near[0]]}'?" if near else f"Known: {', '.join(known) or 'none'}."
    return UnknownName(f"no {kind} '{name}'. {hint}")
