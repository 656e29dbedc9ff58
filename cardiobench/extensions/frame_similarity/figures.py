"""Plot cosine similarity within clips by time distance, and between patients."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from cardiobench.report.plots.style import FLOOR, FLOOR_LINE, MODEL, shorten, subplots
from cardiobench.results.analysis_result import AnalysisResult

COLUMNS = 4  # Maximum number of matrices side by side.


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Draw the mean matrix over clips, and cosine against frame distance with the level between patients."""
    apart = record.tables["apart"]
    within, between = record.values["frames of a clip"], record.values["frames between patients"]
    title = f"{record.subject}   {record.models[0]['name']}"
    figure, (left, right) = subplots(1, 2, figsize=(9, 3.9), title=title)
    image = _draw_matrix(left, record, min(_matrix(record).min(), between.value))
    figure.colorbar(image, ax=left, label="mean cosine (darkest: between patients or less)")
    left.set_title(f"mean off the diagonal {within.value:.4f} [{within.low:.4f}, {within.high:.4f}]")
    right.plot(apart["frames_apart"], apart["cosine"], "-o", color=MODEL, markersize=4, label="frames of one clip")
    right.axhline(between.value, label="frames of different patients", **FLOOR_LINE)
    right.axhspan(between.low, between.high, color=FLOOR, alpha=0.12, linewidth=0)
    right.set(xlabel="frames apart", ylabel="cosine", title=f"{within.n} clips of {within.n_patients} patients")
    right.legend()
    right.grid(axis="y")
    return {"matrix": figure}


def draw_side_by_side(records: Sequence[AnalysisResult]) -> dict[str, Figure]:
    """Draw the matrices of several models on one dataset with a shared colour scale (arXiv:2510.00520, Figure 2)."""
    columns = min(COLUMNS, len(records))
    rows = -(-len(records) // columns)
    size = (2.6 * columns + 1, 2.7 * rows + 0.5)
    figure, grid = subplots(rows, columns, figsize=size, squeeze=False, title=records[0].subject)
    low = min(min(_matrix(r).min(), r.values["frames between patients"].value) for r in records)
    for axes, record in zip(grid.flat, records, strict=False):
        image = _draw_matrix(axes, record, low)
        within, between = (record.values[key].value for key in ("frames of a clip", "frames between patients"))
        title = f"{shorten(record.models[0]['name'], 34)}\nin a clip {within:.3f}, across patients {between:.3f}"
        axes.set_title(title, fontsize=8)
    for axes in grid.flat[len(records) :]:
        axes.set_visible(False)
    figure.colorbar(image, ax=grid, label="mean cosine of two frames", shrink=0.9)
    return {"side_by_side": figure}


def _matrix(record: AnalysisResult) -> np.ndarray:
    """Return the mean cosine of each pair of frames, (frames, frames)."""
    return record.tables["matrix"].pivot(index="frame", columns="other", values="cosine").to_numpy()


def _draw_matrix(axes: Axes, record: AnalysisResult, low: float) -> AxesImage:
    image = axes.imshow(_matrix(record), cmap="viridis", vmin=low if low < 1 - 1e-6 else 0, vmax=1, origin="lower")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        axis.set_label_text("frame")
    return image
