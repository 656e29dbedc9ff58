"""Plot cosine similarity within clips by time distance, and between patients."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from cardiobench.report.plots.style import FLOOR, FLOOR_LINE, MODEL, shorten, subplots
from cardiobench.results.analysis_result import AnalysisResult

COLUMNS = 2  # More matrices side by side could not be read on a phone.
NOTES = {"matrix": "Brackets, and the shaded area: 95 % intervals over patients."}


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Draw the mean matrix over clips, and cosine against frame distance with the level between patients."""
    apart = record.tables["apart"]
    within, between = record.values["frames of a clip"], record.values["frames between patients"]
    title = (record.subject, record.models[0]["name"])
    figure, (above, below) = subplots(2, 1, height=6.0, title=title)
    image = _draw_matrix(above, record, min(_matrix(record).min(), between.value))
    figure.colorbar(image, ax=above, label="mean cosine (darkest:\nbetween patients or less)")
    above.set_title(
        "mean off the diagonal "
        + (
            f"{within.value:.4f}"
            if np.isnan(within.low)
            else f"{within.value:.4f} [{within.low:.4f}, {within.high:.4f}]"
        )
    )
    below.plot(apart["frames_apart"], apart["cosine"], "-o", color=MODEL, markersize=4, label="frames of one clip")
    below.axhline(between.value, label="frames of different patients", **FLOOR_LINE)
    below.axhspan(between.low, between.high, color=FLOOR, alpha=0.12, linewidth=0)
    below.set(xlabel="frames apart", ylabel="cosine", title=f"{within.n} clips of {within.n_patients} patients")
    below.legend()
    below.grid(axis="y")
    return {"matrix": figure}


def draw_side_by_side(records: Sequence[AnalysisResult]) -> dict[str, Figure]:
    """Draw the matrices of several models on one dataset with a shared colour scale (arXiv:2510.00520, Figure 2)."""
    columns = min(COLUMNS, len(records))
    rows = -(-len(records) // columns)
    figure, grid = subplots(rows, columns, height=2.4 * rows + 0.6, squeeze=False, title=(records[0].subject,))
    low = min(min(_matrix(r).min(), r.values["frames between patients"].value) for r in records)
    for axes, record in zip(grid.flat, records, strict=False):
        image = _draw_matrix(axes, record, low)
        within, between = (record.values[key].value for key in ("frames of a clip", "frames between patients"))
        name = shorten(record.models[0]["name"], 26)
        title = f"{name}\nin a clip {within:.3f}\nacross patients {between:.3f}"
        axes.set_title(title, fontsize=8)
    for axes in grid.flat[len(records) :]:
        axes.set_visible(False)
    figure.colorbar(image, ax=grid, label="mean cosine of two frames", location="bottom")
    return {"side_by_side": figure}


def _matrix(record: AnalysisResult) -> np.ndarray:
    """Return the mean cosine of each pair of frames. The shape is (frames, frames)."""
    return record.tables["matrix"].pivot(index="frame", columns="other", values="cosine").to_numpy()


def _draw_matrix(axes: Axes, record: AnalysisResult, low: float) -> AxesImage:
    image = axes.imshow(_matrix(record), cmap="viridis", vmin=low if low < 1 - 1e-6 else 0, vmax=1, origin="lower")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        axis.set_label_text("frame")
    return image
