"""Represent a figure with its caption, tables and files, and as SVG in a page: compact, in its colours, with unique ids."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from cardiobench.core.io import file_part
from cardiobench.core.tables import write_csv
from cardiobench.report.plots.style import FLOOR, GRID, INK, LINES, MODEL, MUTED, PAPER, PUBLISHED, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CSS_COLOURS = {
    **{colour: f"var(--line-{number})" for number, colour in enumerate(LINES)},
    INK: "currentColor",
    MUTED: "var(--muted)",
    GRID: "var(--line)",
    MODEL: "var(--model)",
    FLOOR: "var(--floor)",
    PUBLISHED: "var(--published)",
    PAPER: "var(--paper)",
}
_TAG = re.compile(r"<[^/>][^>]*>")  # A closing tag has no attributes.
# Ids except referenced, salted ones; colours; numbers.
_LONG = re.compile(r' id="(?![mpC][0-9a-f_]*[0-9a-f]{10}")[^"]*"|#[0-9a-f]{6}\b|-?\d+\.\d{2,}')


@dataclass(frozen=True)
class ReportFigure:
    """Drawn figure with its name and caption.

    Attributes:
        name: Part of the file names.
        caption: Caption of one or two sentences that state n, and what bars and intervals are. Saved files have it below
            the figure.
        figure: Matplotlib figure.
        tables: Mapping from name to table with the plotted values.
    """

    name: str
    caption: str
    figure: "Figure"
    tables: Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class SavedFigure:
    """Saved figure with its HTML element.

    Attributes:
        name: Name of the figure.
        caption: Caption of the figure.
        svg: SVG element in the colours of the page.
        files: Paths of the SVG, the optional PNG, and a CSV file per table.
    """

    name: str
    caption: str
    svg: str
    files: tuple[Path, ...] = ()


def range_text(counts: pd.Series) -> str:
    """Return the range of some counts, such as those of the patients of several results."""
    low, high = int(counts.min()), int(counts.max())
    return str(low) if low == high else f"{low} to {high}"


def save_report_figure(figure: ReportFigure, folder: Path, stem: str, *, png: bool) -> SavedFigure:
    """Save a figure as `<stem>.<name>.svg`, its tables as `<stem>.<table>.csv`, and optionally a PNG."""
    # Names can come from an untrusted table.
    vector, image = (folder / f"{stem}.{file_part(figure.name)}.{suffix}" for suffix in ("svg", "png"))
    svg = save_figure(figure.figure, vector, figure.caption, png=png)
    tables = {folder / f"{stem}.{file_part(name)}.csv": table for name, table in figure.tables.items()}
    for path, table in tables.items():
        write_csv(table, path)
    return SavedFigure(figure.name, figure.caption, inline_svg(svg), (vector, *([image] if png else []), *tables))


def inline_svg(svg: str) -> str:
    """Return a figure from `save_figure` as an HTML element; matplotlib has escaped its texts."""
    head = re.search(r'<svg[^>]*viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>', svg)
    if head is None:
        raise ValueError("no <svg> element with a viewBox from 0 0 in the figure")
    width, height = head.groups()
    body = re.sub(r"<!--.*?-->", "", svg[head.end() :], flags=re.DOTALL)
    body = _TAG.sub(lambda tag: _LONG.sub(_shorter, tag[0]), body)
    body = re.sub(r"\s*\n\s*", " ", body)
    pixels = round(float(width) * 4 / 3)  # Convert points to CSS pixels.
    return f'<svg viewBox="0 0 {width} {height}" width="{pixels}" aria-hidden="true">{body}'


def _shorter(match: re.Match[str]) -> str:
    """Return no id, a colour as CSS variable, or a number with one decimal, which is precise enough in points."""
    text = match[0]
    if text[0] == "#":
        return _CSS_COLOURS.get(text, text)
    return "" if text[0] == " " else f"{float(text):.1f}".removesuffix(".0")
