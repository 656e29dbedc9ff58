"""How the report's pictures look, and how they come to be files: PNG, SVG and the CSV behind them. Nothing global is touched."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from cardiobench.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, GRID = "#1b1f24", "#5b6470", "#d9dde3"
MODEL, FLOOR, PUBLISHED, PAPER = "#0b6fa4", "#b8480b", "#6d4aa8", "#fefefe"
LINES = ("#0b6fa4", "#b8480b", "#2f7d4f", "#6d4aa8", "#8a6d00", "#a8326b", "#3a4a5c", "#008b8b")
"""Told apart by people with any colour vision, and by the dashes that go with them."""
DASHES = ("-", "--", "-.", ":")
DPI = 120
MANY = 400  # points that a vector picture draws one by one; more are one image inside it
_STYLE = {
    "text.parse_math": False,  # a dollar in a model's name is a dollar
    "svg.fonttype": "none",
    "svg.hashsalt": "cardiobench",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.facecolor": "none",
    "legend.facecolor": "none",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8,
}


@dataclass(frozen=True)
class Picture:
    """A figure and what belongs to it.

    Attributes:
        name: part of the file names.
        caption: one or two sentences with n.
        figure: drawn.
        table: the rows behind it.
    """

    name: str
    caption: str
    figure: "Figure"
    table: pd.DataFrame


@dataclass(frozen=True)
class Drawn:
    """A picture on disk and for the page.

    Attributes:
        name: of the picture.
        caption: of the picture.
        svg: to stand in HTML; takes its colours from the page.
        files: PNG, SVG, CSV.
    """

    name: str
    caption: str
    svg: str
    files: tuple[Path, ...] = field(default_factory=tuple)


@contextmanager
def style() -> Iterator[None]:
    """The look of every picture while it is drawn; `MissingExtra` without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("drawing the report's pictures", "analysis", "matplotlib") from None
    with matplotlib.rc_context(_STYLE):
        yield


def new_figure(width: float, height: float, columns: int = 1, rows: int = 1, **margins) -> "tuple[Figure, list[Axes]]":
    """An empty figure and its panels, row by row.

    Args:
        width: inches.
        height: inches.
        columns: of panels.
        rows: of panels.
        margins: in inches: left, right, top, bottom, and wspace, hspace between panels.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    room = {"left": 0.8, "right": 0.2, "top": 0.35, "bottom": 0.55, "wspace": 0.8, "hspace": 0.8, **margins}
    panel_width = (width - room["left"] - room["right"] - (columns - 1) * room["wspace"]) / columns
    panel_height = (height - room["top"] - room["bottom"] - (rows - 1) * room["hspace"]) / rows
    figure.subplots_adjust(
        left=room["left"] / width,
        right=1 - room["right"] / width,
        top=1 - room["top"] / height,
        bottom=room["bottom"] / height,
        wspace=room["wspace"] / panel_width,
        hspace=room["hspace"] / panel_height,
    )
    grid = figure.subplots(rows, columns, squeeze=False)
    return figure, list(grid.flat)


def interval_rows(axes: "Axes", rows: Sequence["IntervalRow"]) -> None:
    """Rows from the top down: a label, an interval, a mark on the value, and the value at the right.

    Drawn as few collections, without ticks, because a report has hundreds of these.
    """
    heights = range(len(rows) - 1, -1, -1)
    bars = [(row, height) for row, height in zip(rows, heights, strict=True) if row.low == row.low]
    axes.hlines([h for _, h in bars], [r.low for r, _ in bars], [r.high for r, _ in bars], color=MODEL, linewidth=2)
    for marker, hollow, colour in {(row.marker, row.hollow, row.colour) for row in rows}:
        own = [
            (r.value, h)
            for r, h in zip(rows, heights, strict=True)
            if (r.marker, r.hollow, r.colour) == (marker, hollow, colour)
        ]
        axes.plot(
            *zip(*own, strict=True), marker, color=colour, markersize=6, markerfacecolor=PAPER if hollow else colour
        )
    for row, height in zip(rows, heights, strict=True):
        axes.annotate(
            row.label, (-0.02, height), xycoords=("axes fraction", "data"), ha="right", va="center", fontsize=8
        )
        text = "undefined" if row.value != row.value else f"{row.value:.2f}"
        axes.annotate(text, (1.01, height), xycoords=("axes fraction", "data"), va="center", fontsize=8)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.yaxis.set_visible(False)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(few_ticks())
    axes.grid(axis="x")


@dataclass(frozen=True)
class IntervalRow:
    """A row of `interval_rows`, in the unit of the axis."""

    label: str
    value: float
    low: float
    high: float
    hollow: bool = False
    marker: str = "o"
    colour: str = MODEL


def few_ticks():
    """At most five round numbers."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=5)


def short(text: str, longest: int = 44) -> str:
    """Text of a label, on one line and not too long."""
    text = " ".join(str(text).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def write(picture: Picture, folder: Path, stem: str, png: bool) -> Drawn:
    """Save a picture as SVG, and as PNG where that is asked for, with the CSV behind it."""
    from io import StringIO

    folder.mkdir(parents=True, exist_ok=True)
    vector, image, table = (folder / f"{stem}.{picture.name}.{ending}" for ending in ("svg", "png", "csv"))
    text = StringIO()
    picture.figure.savefig(text, format="svg", metadata={"Date": None}, facecolor="white")
    vector.write_text(text.getvalue(), encoding="utf-8")
    picture.table.to_csv(table, index=False)
    if png:
        picture.figure.savefig(image, dpi=DPI, facecolor="white", metadata={"Software": None})
    files = (vector, *([image] if png else []), table)
    return Drawn(picture.name, picture.caption, inline(text.getvalue(), f"{stem}.{picture.name}"), files)


_VARIABLES = {
    INK: "currentColor",
    MUTED: "var(--muted)",
    GRID: "var(--line)",
    MODEL: "var(--model)",
    FLOOR: "var(--floor)",
    PUBLISHED: "var(--published)",
    PAPER: "var(--paper)",
    **{LINES[place]: f"var(--line-{place})" for place in (2, 4, 5, 6, 7)},
}
_NUMBER = re.compile(r"-?\d+\.\d{2,}")


def inline(svg: str, name: str) -> str:
    """A figure as it stands in the page: small, colours of the page, and ids that no other figure has."""
    body = svg[svg.index("<svg") :]
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', body).groups()
    body = body[body.index(">") + 1 :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r'<g id="patch_1">.*?</g>', "", body, count=1, flags=re.DOTALL)  # the white background
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', body))
    prefix = re.sub(r"\W", "_", name)
    body = re.sub(r' id="([^"]*)"', lambda found: f' id="{prefix}-{found[1]}"' if found[1] in used else "", body)
    body = re.sub(r'(url\(#|href="#)', rf"\g<1>{prefix}-", body)
    body = re.sub(r"<[^>]*>", lambda found: _plain(found[0]), body)
    wide = round(float(width) * 4 / 3)  # points to pixels
    return f'<svg viewBox="0 0 {width} {height}" width="{wide}" aria-hidden="true">{re.sub(_BREAKS, " ", body)}</svg>'


_BREAKS = re.compile(r"\s*\n\s*")


def _plain(tag: str) -> str:
    """A tag with the page's colours; a tenth of a point is below what anybody sees. Embedded images keep their bytes."""
    if "data:image" in tag:
        return tag
    for colour, variable in _VARIABLES.items():
        tag = tag.replace(colour, variable)
    tag = _NUMBER.sub(lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), tag)
    return re.sub(r"font: ([^;\"]*?)'[^;\"]*?(?=[;\"])", r"font: \1sans-serif", tag)


def embedded(png: bytes) -> str:
    """An image as it stands in the page, for figures with very many marks."""
    from base64 import b64encode

    return f'<img src="data:image/png;base64,{b64encode(png).decode("ascii")}" alt="" loading="lazy">'
