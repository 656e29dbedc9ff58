"""Figures of analyses, drawn by the `figures` module of the extension that provides the protocol.

Figures only use the tables of a record, so that they can be reproduced from its CSV files.
"""

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from cardiobench.core.extensions import contributions, resolve
from cardiobench.core.io import file_part
from cardiobench.report.plots.style import figure_style, save_figure, shorten
from cardiobench.results.analysis_result import AnalysisResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def analysis_figures(records: Sequence[AnalysisResult]) -> "dict[str, Figure]":
    """Return named figures of one record or of several models' records; empty if the protocol has none.

    Call this function within `figure_style`.
    """
    module = _module(records[0].protocol)
    if module is None:
        return {}
    drawn: dict[str, Figure] = module.draw(records[0]) if len(records) == 1 else module.draw_side_by_side(records)
    return drawn


def analysis_caption(records: Sequence[AnalysisResult], name: str) -> str:
    """Return the caption of a figure: protocol, subject, models, n, and what the figures module says about it in `NOTES`.

    Args:
        records: Records of the figure.
        name: Name of the figure. A note is found by the name or by its beginning before an underscore.
    """
    first, models = records[0], [str(model["name"]) for record in records for model in record.models]
    counts = sorted({estimate.n for record in records for estimate in record.values.values() if estimate.n})
    n = f", n = {counts[0]}{f' to {counts[-1]}' if len(counts) > 1 else ''}" if counts else ""
    notes = getattr(_module(first.protocol), "NOTES", {})
    note = notes.get(name) or notes.get(name.partition("_")[0], "")
    title = f"{first.protocol}, {name}: ".replace("_", " ")
    shown = ", ".join(shorten(one, 40) for one in models)
    return f"{title}{first.subject}, {shown}{n}. {note}".rstrip()


def is_side_by_side(protocol: str) -> bool:
    """Return whether single-model figures of a protocol are shown next to those of other models."""
    return hasattr(_module(protocol), "draw_side_by_side")


def _module(protocol: str) -> ModuleType | None:
    reference = contributions("figures").get(protocol)
    return resolve(reference) if reference else None


def save_figures(record: AnalysisResult, path: Path) -> list[Path]:
    """Draw a record as PNG and SVG next to its file, and return the paths.

    Raises:
        MissingExtra: The package matplotlib is not installed.
    """
    files: list[Path] = []
    with figure_style():
        for name, figure in analysis_figures([record]).items():
            image = path.with_name(f"{path.stem}.{file_part(name)}.png")
            save_figure(figure, image, analysis_caption([record], name))
            files += [image, image.with_suffix(".svg")]
    return files
