"""A figure of the report with its caption and the tables behind it, and its files."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from cardiobench.core.tables import write_csv
from cardiobench.report.plots.style import save_figure
from cardiobench.report.plots.svg import inline_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ReportFigure:
    """A drawn figure with its name and caption.

    Attributes:
        name: Part of the file names.
        caption: One or two sentences with n.
        figure: Figure of matplotlib.
        tables: Name -> the numbers behind it.
    """

    name: str
    caption: str
    figure: "Figure"
    tables: Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class SavedFigure:
    """A figure on disk and for the page.

    Attributes:
        name: Name of the figure.
        caption: Caption of the figure.
        svg: Element for HTML, in the colours of the page.
        files: SVG, PNG where it was asked for, CSV of each table.
    """

    name: str
    caption: str
    svg: str
    files: tuple[Path, ...] = ()


def save_report_figure(figure: ReportFigure, folder: Path, stem: str, *, png: bool) -> SavedFigure:
    """Save a figure as `<stem>.<name>.svg`, its tables as `<stem>.<table>.csv`, and a PNG where asked for."""
    vector, image = (folder / f"{stem}.{figure.name}.{suffix}" for suffix in ("svg", "png"))
    svg = save_figure(figure.figure, vector, png=png)
    tables = {folder / f"{stem}.{name}.csv": table for name, table in figure.tables.items()}
    for path, table in tables.items():
        write_csv(table, path)
    return SavedFigure(figure.name, figure.caption, inline_svg(svg), (vector, *([image] if png else []), *tables))
