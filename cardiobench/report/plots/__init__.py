"""Figures of analyses: one file per protocol, `draw(record)`, from the record's own tables and nothing else.

So every figure can be drawn again, by anybody, from the CSV beside it.
"""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cardiobench.report.plots.style import figure_style, save_figure
from cardiobench.results.analysis_result import AnalysisResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE_BY_SIDE = ("frame_similarity",)
"""Protocols whose figure of one model is read beside those of others; their modules have `draw_side_by_side(records)`."""


def analysis_figures(records: Sequence[AnalysisResult]) -> "dict[str, Figure]":
    """Return the figures of one record, or of several models' records side by side, by name; none where its protocol has none.

    Call it under `figure_style`.
    """
    module = f"{__name__}.{records[0].protocol}"
    if not str(records[0].protocol).isidentifier() or find_spec(module) is None:
        return {}
    plots = import_module(module)
    return plots.draw(records[0]) if len(records) == 1 else plots.draw_side_by_side(records)


def save_figures(record: AnalysisResult, path: Path) -> list[Path]:
    """Draw a record beside its file, as PNG and SVG; returns the files.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    files: list[Path] = []
    with figure_style():
        for name, figure in analysis_figures([record]).items():
            image = path.with_name(f"{path.stem}.{name}.png")
            save_figure(figure, image)
            files += [image, image.with_suffix(".svg")]
    return files
