"""A panel of a picture: lines, dots and words on two linear scales, placed in inches.

matplotlib's Axes make three lines and two texts of every tick and measure each of them; a report has hundreds of panels, and
these take a third of the time. What stands in them are matplotlib's artists, so a picture saves to any of its formats.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cardiobench.report.plots.style import GRID, INK, MUTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

Range = tuple[float, float]
LINE = 0.17  # inches between two lines of a key
BASELINE = {"top": 0.76, "center": 0.36, "baseline": 0.0, "bottom": -0.24}
"""How far the baseline of a text is below the height that is asked for, in sizes of the font."""


def around(*values: "ArrayLike", margin: float = 0.05) -> Range:
    """A scale that holds every finite value, with a margin on both sides; 0 to 1 where there is none."""
    every = np.concatenate([np.ravel(np.asarray(value, dtype=np.float64)) for value in values])
    every = every[np.isfinite(every)]
    if not len(every):
        return 0.0, 1.0
    low, high = float(every.min()), float(every.max())
    room = margin * (high - low) or 0.05 * abs(high) or 0.5
    return low - room, high + room


def words(figure: "Figure", x: float, y: float, text: str, size: float = 8, va: str = "baseline", **look: Any) -> None:
    """A text at a place in inches, on one line.

    Args:
        figure: to draw in.
        x: of the end that `ha` names.
        y: of the height that `va` names.
        text: as it is.
        size: points.
        va: top, center, baseline or bottom; the same for every text, whatever letters it has.
        look: as matplotlib's Text has it.
    """
    from cardiobench.report.plots.text import Lettering

    shift, turned = -BASELINE[va] * size / 72, bool(look.get("rotation"))
    x, y = (x - shift, y) if turned else (x, y + shift)
    figure.add_artist(
        Lettering(x, y, text, fontsize=size, rotation_mode="anchor", transform=figure.dpi_scale_trans, **look)
    )


def stroke(figure: "Figure", x: "ArrayLike", y: "ArrayLike", **look: Any) -> None:
    """A line or dots at places in inches, with a break at every NaN; `look` as matplotlib's Line2D has it."""
    from matplotlib.lines import Line2D

    figure.add_artist(Line2D(x, y, transform=figure.dpi_scale_trans, **look))


def key(
    figure: "Figure",
    entries: Sequence[tuple[str, dict[str, Any]]],
    x: float,
    y: float,
    columns: int = 1,
    wide: float = 0.0,
) -> None:
    """What lines and dots mean: rows of samples and words, from a place in inches downwards.

    Args:
        figure: to draw in.
        entries: words and the look of the line.
        x: left end.
        y: height of the first row.
        columns: entries side by side.
        wide: inches of a column.
    """
    for number, (text, look) in enumerate(entries):
        left, height = x + (number % columns) * wide, y - (number // columns) * LINE
        stroke(figure, [left, left + 0.14, left + 0.28], [height] * 3, markevery=[1], **look)
        words(figure, left + 0.36, height, text, va="center")


class Panel:
    """Two linear scales on a rectangle of a figure."""

    def __init__(self, figure: "Figure", box: tuple[float, float, float, float], x: Range, y: Range):
        """Nothing is drawn yet.

        Args:
            figure: to draw in.
            box: left, bottom, width, height in inches.
            x: lowest and highest number across.
            y: lowest and highest number upwards.
        """
        self.figure, self.x, self.y = figure, x, y
        self.left, self.bottom, self.width, self.height = box
        self.right, self.top = self.left + self.width, self.bottom + self.height

    def across(self, values: "ArrayLike") -> np.ndarray:
        """Inches from the left of the figure."""
        return self.left + (np.asarray(values, dtype=np.float64) - self.x[0]) / (self.x[1] - self.x[0]) * self.width

    def up(self, values: "ArrayLike") -> np.ndarray:
        """Inches from the bottom of the figure."""
        return self.bottom + (np.asarray(values, dtype=np.float64) - self.y[0]) / (self.y[1] - self.y[0]) * self.height

    def line(self, x: "ArrayLike", y: "ArrayLike", **look: Any) -> None:
        """A line through points."""
        stroke(self.figure, self.across(x), self.up(y), **look)

    def dots(self, x: "ArrayLike", y: "ArrayLike", marker: str = "o", size: float = 6, **look: Any) -> None:
        """A mark at each point."""
        self.line(x, y, marker=marker, markersize=size, linestyle="", **look)

    def bars(self, low: "ArrayLike", high: "ArrayLike", y: "ArrayLike", **look: Any) -> None:
        """A piece of a line at each height."""
        low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        ends = np.column_stack([low, high, np.full(len(low), np.nan)]).ravel()
        self.line(ends, np.repeat(np.asarray(y, dtype=np.float64), 3), solid_capstyle="butt", **look)

    def words(self, x: float, y: float, text: str, **look: Any) -> None:
        """A text at a point."""
        words(self.figure, float(self.across(x)), float(self.up(y)), text, **look)

    def bottom_scale(self, label: str, ticks: Sequence[float] | None = None, size: float = 9) -> None:
        """The lower edge with numbers and the words below it, and a line up from each number."""
        ticks, texts = _numbers(self.x, ticks)
        places = self.across(ticks)
        self._edge([self.left, self.right], [self.bottom] * 2)
        self._grid(np.repeat(places, 3), np.tile([self.bottom, self.top, np.nan], len(places)))
        for place, text in zip(places, texts, strict=True):
            words(self.figure, place, self.bottom - 0.06, text, ha="center", va="top")
        words(self.figure, self.left + self.width / 2, self.bottom - 0.24, label, size, ha="center", va="top")

    def left_scale(self, label: str, ticks: Sequence[float] | None = None, size: float = 9, room: float = 0.42) -> None:
        """The left edge with numbers and the words beside it, `room` inches away, and a line across from each number."""
        ticks, texts = _numbers(self.y, ticks)
        places = self.up(ticks)
        self._edge([self.left] * 2, [self.bottom, self.top])
        self._grid(np.tile([self.left, self.right, np.nan], len(places)), np.repeat(places, 3))
        for place, text in zip(places, texts, strict=True):
            words(self.figure, self.left - 0.06, place, text, ha="right", va="center")
        middle = self.bottom + self.height / 2
        words(self.figure, self.left - room, middle, label, size, ha="center", va="center", rotation=90)

    def title(self, text: str, size: float = 9) -> None:
        """Words above the panel."""
        words(self.figure, self.left, self.top + 0.07, text, size, color=INK)

    def _edge(self, x: Sequence[float], y: Sequence[float]) -> None:
        stroke(self.figure, x, y, color=MUTED, linewidth=0.8)

    def _grid(self, x: np.ndarray, y: np.ndarray) -> None:
        stroke(self.figure, x, y, color=GRID, linewidth=0.7, zorder=0)


def _numbers(scale: Range, ticks: Sequence[float] | None) -> tuple[np.ndarray, list[str]]:
    """Given or at most five round numbers inside a scale, and their texts, all with as many decimals."""
    from matplotlib.ticker import MaxNLocator

    if ticks is None:
        ticks = MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]).tick_values(*scale)
    inside = np.array([tick for tick in ticks if scale[0] <= tick <= scale[1]])
    step = float(np.diff(inside).min()) if len(inside) > 1 else abs(scale[1] - scale[0])
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step < 1 or step % 1 == 0 else 1
    if round(step, decimals) != round(step, 12) and step < 1:  # 0.25 has a decimal more than 0.2
        decimals += 1
    return inside, [f"{round(tick, decimals) + 0.0:.{decimals}f}".replace("-", "−") for tick in inside]
