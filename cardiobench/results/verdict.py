"""Define verdicts on scores relative to their floors."""

from enum import Enum, StrEnum, auto
from typing import Self

LEVEL, REVERSED_LEVEL = 0.05, 0.01
"""P-value thresholds: below the first, answers carry information; below the second, they may be called reversed."""


class Rank(Enum):
    """Effect of a verdict on rankings.

    Attributes:
        WINS: Counted as better than the floor by filters and by the leaderboard.
        RANKED: Ranked, but not counted as better than the floor.
        NONE: Excluded from rankings.
    """

    WINS = auto()
    RANKED = auto()
    NONE = auto()


class Verdict(StrEnum):
    """Verdict on a score; its value is the text in results and on pages.

    Attributes:
        sign: Symbol shown next to the text.
        meaning: Explanation in legends, tooltips and docs/verdict.md.
        rank: Effect on rankings.
    """

    sign: str
    meaning: str
    rank: Rank

    def __new__(cls, text: str, sign: str, meaning: str, rank: Rank) -> Self:
        """Create a member whose value is its text."""
        member = str.__new__(cls, text)
        member._value_, member.sign, member.meaning, member.rank = text, sign, meaning, rank
        return member

    ABOVE = (
        "above the floor",
        "▲",
        "the whole 95 % interval lies above the floor, and fewer than 1 in 20 random permutations of the same answers "
        "over patients score as well",
        Rank.WINS,
    )
    INFORMED = (
        "carries information, not above the floor",
        "◇",
        "the answers depend on the patient (fewer than 1 in 20 permutations score as well), but the interval is not above "
        "the floor: a poor threshold, poor calibration or too few patients",
        Rank.RANKED,
    )
    NOTHING = (
        "no information shown",
        "≈",
        "1 in 20 or more permutations of the same answers over patients score as well",
        Rank.RANKED,
    )
    REVERSED = (
        "reversed",
        "▼",
        "the whole 95 % interval lies below the floor, and fewer than 1 in 100 permutations of the same answers over patients score as "
        "badly: two classes or the sign may be swapped",
        Rank.RANKED,
    )
    FEW = (
        "too few to say",
        "?",
        "too few patients, each counted by the share of rows, or too few outside the most frequent class",
        Rank.RANKED,
    )
    INCOMPARABLE = (
        "no comparison possible",
        "·",
        "one class in the test set, no floor, or scored by older rules: not ranked",
        Rank.NONE,
    )


def verdict_table() -> str:
    """Return the verdict table of docs/verdict.md: sign, text and meaning, as Markdown."""
    rows = [f"| {verdict.sign} | **{verdict}** | {verdict.meaning} |" for verdict in Verdict]
    return "\n".join(("| sign | verdict | meaning |", "|---|---|---|", *rows)) + "\n"
