"""Spellings of one id: case, leading zeros, composed letters, and characters that are not visible."""

import re
import unicodedata
from collections.abc import Iterable

import numpy as np
import pandas as pd

SHOWN = 3
"""Spellings of one id that a message shows."""
_NUMBER = re.compile(r"(?P<start>[^0-9]*)0*(?P<number>0|[1-9][0-9]*)(\.0+)?")
_HYPHENS = re.compile(r"[\u2010-\u2015\u2212]")
# Default-ignorable characters of other categories than Cf: the grapheme joiner and variation selectors.
_IGNORED = re.compile(r"[\u034f\ufe00-\ufe0f]")


def folded(text: str) -> str:
    r"""Return the form that all spellings of an id share.

    Compatibility forms, case and invisible characters are removed as in NFKC_Casefold of the Unicode Standard (section
    3.13), then white space, the kind of hyphen, and, if all digits stand at the end, leading zeros and a decimal `.0`.

    >>> [folded(text) for text in ("07", "7.0", "Pat\u00a0007", "pat\u200b7", "Mu\u0308ller")]
    ['7', '7', 'pat7', 'pat7', 'müller']
    """
    if not text.isascii():
        visible = (letter for letter in _IGNORED.sub("", text) if unicodedata.category(letter) != "Cf")
        text = unicodedata.normalize("NFKC", "".join(visible))
        text = _HYPHENS.sub("-", unicodedata.normalize("NFKC", text.casefold()))
    text = "".join(text.casefold().split())
    number = _NUMBER.fullmatch(text)
    return number["start"] + number["number"] if number else text


def folded_column(texts: pd.Series) -> pd.Series:
    """Return the folded form of each text; each distinct text is folded once."""
    codes, distinct = pd.factorize(texts)
    return pd.Series(np.array([*map(folded, distinct)], dtype=object)[codes], index=texts.index, name=texts.name)


def spellings(texts: pd.Series) -> list[dict[str, int]]:
    """Return the ids with several spellings in order of their first row, each as a mapping from spelling to number of rows."""
    codes, distinct = pd.factorize(texts)
    groups: dict[str, dict[str, int]] = {}
    for text, count in zip(distinct, np.bincount(codes), strict=True):
        groups.setdefault(folded(str(text)), {})[str(text)] = int(count)
    return [group for group in groups.values() if len(group) > 1]


def shown_spellings(groups: Iterable[dict[str, int]]) -> list[str]:
    r"""Return a text for each group, with escapes for letters outside ASCII, since spellings may look the same.

    >>> shown_spellings([{"P7": 2, "p07": 1}, {"M\u00fcller": 1, "Mu\u0308ller": 1}])
    ["'P7' (2 rows) = 'p07' (1 row)", "'M\\xfcller' (1 row) = 'Mu\\u0308ller' (1 row)"]
    """
    texts = []
    for group in groups:
        named = [f"{text!a} ({count} row{'' if count == 1 else 's'})" for text, count in [*group.items()][:SHOWN]]
        more = f" and {len(group) - SHOWN} more" if len(group) > SHOWN else ""
        texts.append(" = ".join(named) + more)
    return texts
