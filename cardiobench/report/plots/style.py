"""How the report's pictures look, and how they come to be files: PNG, SVG and the CSV behind them. Nothing global is touched."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from cardiobench.core.errors import MissingExtra

if TYPE_CHECKING:
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
class SavedFigure:
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


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure.

    Args:
        width: inches.
        height: inches.
    """
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def subplots(rows: int = 1, columns: int = 1, *, figsize: tuple[float, float], layout: str | None = None, **more):
    """A figure with matplotlib's Axes, which are slow and can do everything; as `matplotlib.pyplot.subplots`, for files only.

    Args:
        rows: of panels.
        columns: of panels.
        figsize: inches.
        layout: engine, such as constrained.
        more: for `Figure.subplots`.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=figsize, layout=layout)
    return figure, figure.subplots(rows, columns, **more)


def save_image(figure: "Figure", path: Path) -> str:
    """Write a figure as PNG and SVG, the same bytes every time; returns the SVG."""
    text = StringIO()
    path.parent.mkdir(parents=True, exist_ok=True)
    # Laid out and measured once, not before each of the files.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    look = {"bbox_inches": figure.get_tightbbox().padded(0.1), "facecolor": "white"}
    figure.savefig(text, format="svg", metadata={"Date": None}, **look)
    figure.savefig(path.with_suffix(".png"), dpi=DPI, metadata={"Software": None}, **look)
    path.with_suffix(".svg").write_text(text.getvalue(), encoding="utf-8")
    return text.getvalue()


def shorten(text: str, longest: int = 44) -> str:
    """Text of a label, on one line and not too long."""
    text = " ".join(str(text).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def write(picture: Picture, folder: Path, stem: str, png: bool) -> SavedFigure:
    """Save a picture as SVG, and as PNG where that is asked for, with the CSV behind it."""
    folder.mkdir(parents=True, exist_ok=True)
    vector, image, table = (folder / f"{stem}.{picture.name}.{ending}" for ending in ("svg", "png", "csv"))
    text = StringIO()
    picture.figure.savefig(text, format="svg", metadata={"Date": None}, facecolor="white")
    vector.write_text(text.getvalue(), encoding="utf-8")
    picture.table.to_csv(table, index=False)
    if png:
        picture.figure.savefig(image, dpi=DPI, facecolor="white", metadata={"Software": None})
    files = (vector, *([image] if png else []), table)
    return SavedFigure(picture.name, picture.caption, inline(text.getvalue(), f"{stem}.{picture.name}"), files)


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
_CHANGED = re.compile(r"#[0-9a-f]{6}|-?\d+\.\d{2,}")
_FONT = re.compile(r"font: ([^;\"]*?)'[^;\"]*?(?=[;\"])")


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
    body = re.sub(r"<[^/>][^>]*>", lambda found: _plain(found[0]), body)
    wide = round(float(width) * 4 / 3)  # points to pixels
    return f'<svg viewBox="0 0 {width} {height}" width="{wide}" aria-hidden="true">{re.sub(_BREAKS, " ", body)}</svg>'


_BREAKS = re.compile(r"\s*\n\s*")


def _plain(tag: str) -> str:
    """A tag with the page's colours; a tenth of a point is below what anybody sees. Embedded images keep their bytes."""
    if "data:image" in tag:
        return tag
    tag = _CHANGED.sub(_shorter, tag)
    return _FONT.sub(r"font: \1sans-serif", tag) if "font: " in tag else tag


def _shorter(found: re.Match) -> str:
    """A colour as the page calls it, or a number with one decimal."""
    text = found[0]
    return _VARIABLES.get(text, text) if text[0] == "#" else f"{float(text):.1f}".removesuffix(".0")


def embedded(png: bytes) -> str:
    """An image as it stands in the page, for figures with very many marks."""
    from base64 import b64encode

    return f'<img src="data:image/png;base64,{b64encode(png).decode("ascii")}" alt="" loading="lazy">'
