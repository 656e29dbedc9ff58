"""Represent a figure with its caption, tables and files."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from cardiobench.core.io import file_part
from cardiobench.core.tables import write_csv
from cardiobench.report.plots.style import save_figure
from cardiobench.report.plots.svg import inline_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
