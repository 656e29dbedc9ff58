"""Front matter of a card: YAML between two `---` lines at the beginning of a Markdown file."""

from collections.abc import Mapping
from typing import Any

import yaml


def split_card(card: str) -> tuple[str, str]:
    r"""Return the YAML of a card and the text below it; the YAML is empty if there is none.

    >>> split_card("---\nlicense: mit\n---\n# Title\n")
    ('license: mit', '# Title\n')
    """
    start, _, rest = card.partition("---\n")
    front, closed, body = rest.partition("\n---\n")
    return (front, body) if closed and not start else ("", card)


def join_card(facts: Mapping[str, Any], body: str) -> str:
    """Return a card with these facts, in their order, above a text."""
    return f"---\n{yaml.safe_dump(dict(facts), sort_keys=False, allow_unicode=True)}---\n{body}"
