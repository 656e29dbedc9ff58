"""Define the style of figures and save them without changing global matplotlib state."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from io import StringIO
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from cardiobench.core.errors import MissingExtra
from cardiobench.core.io import write_atomic, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpec
    from matplotlib.transforms import Bbox
    from numpy.typing import ArrayLike

INK, MUTED, GRID, PAPER = "#1b1f24", "#5b6470", "#d9dde3", "#fefefe"
MODEL, FLOOR, PUBLISHED = "#0b6fa4", "#b8480b", "#6d4aa8"
LINES = (MODEL, FLOOR, "#2f7d4f", PUBLISHED, "#8a6d00", "#a8326b", "#3a4a5c", "#008b8b")
"""Colour-blind-safe colours of models; dash patterns differ as well."""
DASHES = ("-", "--", "-.", ":")
FLOOR_LINE: dict[str, Any] = {"color": FLOOR, "linestyle": "--", "linewidth": 1.3}
WIDTH = 4.0
"""Width of the report's figures in inches, at which their text is readable on a phone."""
DPI = 200
MOST_CHARACTERS = 200  # Letters i that are wider together than a figure.
LONGEST_LABEL = 32  # Maximum number of characters of a heatmap label.
FONT, TEXT, TITLE = "DejaVu Sans", 8, 9  # Sizes in points.
LINE_HEIGHT = 0.16
"""Height in inches of a line of a title or a legend."""
CAPTION = "caption"
"""Id of the caption in a saved SVG."""
BESIDE = 0.12
"""Space in inches beside a caption, and above and below it together."""
SHORTEST_LETTER = 0.045
"""Width in inches that no average letter of a caption is below."""
RASTERIZE_ABOVE = 150  # Number of points above which they are rasterised inside the SVG.
STYLE = {
    "text.parse_math": False,  # Dollar signs in model names are literal.
    "svg.fonttype": "none",
    "font.sans-serif": [FONT],
    "font.size": TEXT,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "figure.titlesize": TITLE,
    "axes.facecolor": "none",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": TITLE,
    "axes.titlesize": TITLE,
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
}


@contextmanager
def figure_style() -> Iterator[None]:
    """Apply the report style while figures are drawn and saved.

    Raises:
        MissingExtra: The package matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("drawing the report's figures", "analysis", "matplotlib") from None
    with matplotlib.rc_context(STYLE):  # type: ignore[arg-type]  # its keys are a Literal of every parameter
        yield


def subplots(
    rows: int = 1,
    columns: int = 1,
    *,
    height: float = 3.0,
    width: float = WIDTH,
    figsize: tuple[float, float] | None = None,
    title: Sequence[str] = (),
    **more: Any,
) -> Any:
    """Return a figure with constrained layout and its axes, like `matplotlib.pyplot.subplots`.

    Args:
        rows: Number of rows.
        columns: Number of columns.
        height: Height in inches without the title.
        width: Width in inches.
        figsize: Width and height in inches, as in matplotlib, instead of `width` and `height`.
        title: Lines of the title, left-aligned.
        more: Additional arguments of `Figure.subplots`.
    """
    from matplotlib.figure import Figure

    width, height = figsize or (width, height)
    figure = Figure(figsize=(width, height + LINE_HEIGHT * len(title)), layout="constrained")
    if title:
        figure.suptitle("\n".join(map(shorten, title)), x=0.01, ha="left")
    return figure, figure.subplots(rows, columns, **more)


def text_width(texts: Iterable[str]) -> float:
    """Return the width in inches of the widest text at tick label size; 0 for no texts."""
    return max(map(_text_width, texts), default=0.0)


@cache
def _text_width(text: str) -> float:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=[FONT], size=TEXT)
    return max(text_to_path.get_text_width_height_descent(line, font, False)[0] for line in text.split("\n")) / 72


def fit(text: str, width: float) -> str:
    """Return a text shortened to a width in inches at tick label size.

    Halving the range measures few texts: a name in a file of results may have any length.
    """
    whole = shorten(text, MOST_CHARACTERS)
    if text_width([whole]) <= width:
        return whole
    lengths = range(1, len(whole))
    count = bisect_right(lengths, width, key=lambda longest: text_width([shorten(text, longest)]))
    return shorten(text, max(count, 1))


def tick_width(*axes: "Axes") -> float:
    """Return the width in inches of the widest tick label on the left of the axes."""
    return max(text_width(one.yaxis.get_major_formatter().format_ticks(one.get_yticks().tolist())) for one in axes)


def fixed_grid(figure: "Figure", rows: int, columns: int, **inches: float) -> "GridSpec":
    """Return a grid with fixed margins, which needs no layout solver.

    Args:
        figure: Figure with its final size.
        rows: Number of rows.
        columns: Number of columns.
        inches: Margins `left`, `right`, `bottom` and `top`, space `between` columns, and space `above` each row except
            the first (default 0), in inches.
    """
    from matplotlib.gridspec import GridSpec

    width, height = figure.get_size_inches()
    left, right, bottom, top = (inches[name] for name in ("left", "right", "bottom", "top"))
    between, above = inches.get("between", 0.0), inches.get("above", 0.0)
    column = (width - left - right - between * (columns - 1)) / columns
    row = (height - bottom - top - above * (rows - 1)) / rows
    return GridSpec(
        rows,
        columns,
        figure,
        left=left / width,
        right=1 - right / width,
        bottom=bottom / height,
        top=1 - top / height,
        wspace=between / column,
        hspace=above / row,
    )


def heatmap(axes: "Axes", values: "ArrayLike", rows: Sequence[str], columns: Sequence[str], **more: Any) -> None:
    """Draw a matrix as shaded squares with texts; NaN squares stay empty.

    Args:
        axes: Axes to draw in.
        values: Values, (rows, columns).
        rows: Labels from top to bottom, shortened because long paths would leave no space for the squares.
        columns: Labels from left to right, shortened.
        more: Optional `low` and `high`, the values of the lightest and darkest shade (default 0 and 1); `texts`, (rows,
            columns), by default the values with two decimals; `rotation` of the column labels in degrees (default 0).
    """
    import numpy as np

    values = np.asarray(values, dtype=np.float64)
    low, high, rotation = more.get("low", 0.0), more.get("high", 1.0), more.get("rotation", 0)
    texts = more.get("texts", [[f"{value:.2f}" for value in row] for row in values])
    axes.imshow(values, cmap="Blues", vmin=low, vmax=high, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = "#ffffff" if value > low + 0.6 * (high - low) else "#101418"
            axes.text(column, row, texts[row][column], ha="center", va="center", color=colour)
    anchor: dict[str, Any] = {"ha": "right", "rotation_mode": "anchor"} if rotation else {}
    axes.set_xticks(
        range(len(columns)), [shorten(name, LONGEST_LABEL) for name in columns], rotation=rotation, **anchor
    )
    axes.set_yticks(range(len(rows)), [shorten(name, LONGEST_LABEL) for name in rows])
    axes.tick_params(left=False, bottom=False)
    axes.spines[:].set_visible(False)


def save_figure(figure: "Figure", path: Path, caption: str = "", *, png: bool = True) -> str:
    """Save a figure as SVG and optionally PNG, with reproducible bytes and its caption below.

    Args:
        figure: Figure drawn within `figure_style`.
        path: Path of the files; its suffix is replaced.
        caption: Caption, which makes the files complete without a page; empty for none.
        png: Whether to save a PNG as well.

    Returns:
        Content of the SVG without the caption.
    """
    from matplotlib.transforms import Bbox

    _lay_out(figure)
    width, height = figure.get_size_inches()
    more = _write_below(figure, caption) if caption else 0.0
    box = Bbox.from_bounds(0, -more, width, height + more) if caption else None
    text = _to_svg(figure, path.stem, box)
    write_text(text, path.with_suffix(".svg"))
    if png:
        metadata = {"Software": None}
        draw = partial(figure.savefig, format="png", dpi=DPI, metadata=metadata, bbox_inches=box)
        write_atomic(path.with_suffix(".png"), draw)
    return _without_caption(text, 72 * height) if caption else text


def _write_below(figure: "Figure", caption: str) -> float:
    """Write a caption below the canvas of a figure and return its height in inches."""
    width, height = figure.get_size_inches()
    for legend in figure.legends:
        if legend.get_bbox_to_anchor() is figure.bbox:  # It would move to the bottom of what is saved, the caption.
            legend.set_bbox_to_anchor((0, 0, 1, 1), figure.transFigure)
    longest = int(width / SHORTEST_LETTER)
    while text_width(lines := wrap(caption, longest)) > width - 2 * BESIDE and longest > 1:
        longest -= 1
    figure.text(
        BESIDE / width, -BESIDE / 2 / height, "\n".join(lines), va="top", linespacing=1.4, zorder=1000, gid=CAPTION
    )
    return LINE_HEIGHT * len(lines) + BESIDE


def _without_caption(svg: str, height: float) -> str:
    """Return an SVG of `_to_svg` without the caption, cut to the height of the figure in points."""
    svg = re.sub(rf'\n( *)<g id="{CAPTION}">.*?\n\1</g>', "", svg, count=1, flags=re.DOTALL)
    svg = re.sub(r'(<svg [^>]*?height=")[\d.]+pt"', rf'\g<1>{height:g}pt"', svg, count=1)
    return re.sub(r'(viewBox="0 0 [\d.]+ )[\d.]+"', rf'\g<1>{height:g}"', svg, count=1)


def _lay_out(figure: "Figure") -> None:
    """Lay out a figure once, because matplotlib would do so for each file."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    if (layout := figure.get_layout_engine()) is not None:
        FigureCanvasSVG(figure)
        figure.set_dpi(72)  # Use the resolution of SVG.
        layout.execute(figure)
        figure.set_layout_engine(None)


def _to_svg(figure: "Figure", salt: str, box: "Bbox | None") -> str:
    """Return a figure as SVG with reproducible bytes.

    Args:
        figure: Figure from `_lay_out`.
        salt: Part of all ids, which makes them unique within a page.
        box: Part to save in inches; None for the canvas.
    """
    import matplotlib

    text = StringIO()
    with matplotlib.rc_context({"svg.hashsalt": salt}):
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(text, format="svg", dpi=DPI, metadata=metadata, bbox_inches=box)
    return text.getvalue()


def shorten(text: str, longest: int = 44) -> str:
    """Return a single-line text, truncated with an ellipsis after `longest` characters."""
    text = " ".join(str(text).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"
