"""Rows of a picture: a label, an interval, a mark on the value, and the value at the right."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cardiobench.report.plots.panel import Panel, Range, words
from cardiobench.report.plots.style import MODEL, PAPER


@dataclass(frozen=True)
class IntervalRow:
    """A row, in the unit of the axis.

    Attributes:
        label: at the left.
        value: where the mark is; NaN for none.
        low: where the interval starts; NaN for none.
        high: where it ends.
        hollow: whether the mark is.
        marker: of matplotlib.
        colour: of the mark.
    """

    label: str
    value: float
    low: float
    high: float
    hollow: bool = False
    marker: str = "o"
    colour: str = MODEL


def heights(rows: Sequence[IntervalRow]) -> np.ndarray:
    """Where the rows stand, from the top down, (rows,)."""
    return np.arange(len(rows) - 1, -1, -1)


def scale(rows: Sequence[IntervalRow]) -> Range:
    """The upward scale of a panel of such rows."""
    return -0.6, len(rows) - 0.4


def interval_rows(panel: Panel, rows: Sequence[IntervalRow]) -> None:
    """Draw them on a panel whose upward scale is `scale(rows)`."""
    up = heights(rows)
    low, high = (np.array([getattr(row, end) for row in rows], dtype=np.float64) for end in ("low", "high"))
    known = np.isfinite(low) & np.isfinite(high)
    panel.bars(low[known], high[known], up[known], color=MODEL, linewidth=2)
    looks = [(row.marker, row.hollow, row.colour) for row in rows]
    for marker, hollow, colour in dict.fromkeys(looks):
        own = [(row.value, y) for row, y, look in zip(rows, up, looks, strict=True) if look == (marker, hollow, colour)]
        panel.dots(*zip(*own, strict=True), marker, color=colour, markerfacecolor=PAPER if hollow else colour)
    for row, y in zip(rows, panel.up(up), strict=True):
        words(panel.figure, panel.left - 0.08, y, row.label, ha="right", va="center")
        text = "undefined" if row.value != row.value else f"{row.value:.2f}"
        words(panel.figure, panel.right + 0.06, y, text, va="center")
