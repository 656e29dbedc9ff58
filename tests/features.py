"""Facts about a feature for tests of all features, stated in `tests/extensions/<feature>/feature.toml`."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

PLACE = Path(__file__).with_name("extensions")
FIELDS = {"command_lines", "skips", "other_meaning", "quantiles_of"}


@cache
def facts() -> dict[str, dict[str, Any]]:
    """Return a mapping from feature to its facts; a feature without such a file has none.

    Fields of a file:
        command_lines: One line for each command, whose arguments `tests/faults/test_command_lines.py` replaces in turn.
        skips: Reasons for which its tests may be skipped, as regular expressions, in addition to `tests/skips.txt`.
        other_meaning: Meaning that the feature's name has in the core, which may therefore use the word.
        quantiles_of: Mapping from a module of the feature that computes quantiles to what they are of, which is never the
            difference of two models.
    """
    return {path.parent.name: tomllib.loads(path.read_text("utf-8")) for path in sorted(PLACE.glob("*/feature.toml"))}


def stated(field: str) -> dict[str, Any]:
    """Return a mapping from feature to value of a field, for the features that state it."""
    return {name: known[field] for name, known in facts().items() if field in known}
