"""The matrix of cosines between the frames of a clip, and their fall with distance beside that between patients."""

from collections import Counter
from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cardiobench.report.plots.style import FLOOR, GRID, INK, MODEL, MUTED, shorten, subplots
from cardiobench.results.analysis_result import AnalysisResult


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Left: mean matrix over clips. Right: cosine against frames apart, with the level between patients."""
    matrix = record.tables["matrix"].pivot(index="frame", columns="other", values="cosine").to_numpy()
    apart = record.tables["apart"]
    between = record.values["frames between patients"]
    figure, (left, right) = subplots(1, 2, figsize=(9, 3.9), layout="constrained")
    low = min(matrix.min(), between.value)
    shown = left.imshow(matrix, cmap="viridis", vmin=low if low < 1 - 1e-6 else 0, vmax=1, origin="lower")
    figure.colorbar(shown, ax=left, label="mean cosine (darkest: between patients or less)")
    left.set_xlabel("frame", fontsize=9)
    left.set_ylabel("frame", fontsize=9)
    within = record.values["frames of a clip"]
    left.set_title(
        f"mean off the diagonal {within.value:.4f} [{within.low:.4f}, {within.high:.4f}]",
        fontsize=9,
        color=INK,
        loc="left",
    )
    right.plot(apart["frames_apart"], apart["cosine"], "-o", color=MODEL, markersize=4, label="frames of one clip")
    right.axhline(between.value, color=FLOOR, linestyle="--", linewidth=1.3, label="frames of different patients")
    right.axhspan(between.low, between.high, color=FLOOR, alpha=0.12, linewidth=0)
    right.set_xlabel("frames apart", fontsize=9)
    right.set_ylabel("cosine", fontsize=9)
    right.set_title(f"{within.n} clips of {within.n_patients} patients", fontsize=9, color=INK, loc="left")
    right.legend(fontsize=8, frameon=False, loc="best")
    right.grid(axis="y", color=GRID, linewidth=0.8)
    for axes in (left, right):
        axes.tick_params(labelsize=8, colors=MUTED, labelcolor=INK)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{record.subject}   {record.models[0]['name']}", fontsize=10, color=INK, x=0.01, ha="left")
    return {"matrix": figure}


COLUMNS = 4  # of matrices side by side


def beside(records: Sequence[AnalysisResult]) -> dict[str, Figure]:
    """The matrices of several models on one dataset, in one scale of colours (arXiv:2510.00520, Figure 2)."""
    table = side_by_side(records)
    columns = min(COLUMNS, len(records))
    rows = -(-len(records) // columns)
    figure, grid = subplots(
        rows, columns, figsize=(2.6 * columns + 1, 2.7 * rows + 0.5), squeeze=False, layout="constrained"
    )
    low = min(table["cosine"].min(), *(record.values["frames between patients"].value for record in records))
    panels = list(grid.flat)
    for axes, (name, own), record in zip(panels, table.groupby("model", sort=False), records, strict=False):
        matrix = own.pivot(index="frame", columns="other", values="cosine").to_numpy()
        shown = axes.imshow(matrix, cmap="viridis", vmin=low if low < 1 - 1e-6 else 0, vmax=1, origin="lower")
        within, between = (record.values[key].value for key in ("frames of a clip", "frames between patients"))
        axes.set_title(
            f"{shorten(name, 34)}\nin a clip {within:.3f}, across patients {between:.3f}",
            fontsize=8,
            color=INK,
            loc="left",
        )
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(nbins=5, integer=True))
            axis.set_label_text("frame", fontsize=8)
        axes.tick_params(labelsize=8, colors=MUTED, labelcolor=INK)
    for axes in panels[len(records) :]:
        axes.set_visible(False)
    figure.colorbar(shown, ax=panels, label="mean cosine of two frames", shrink=0.9)
    figure.suptitle(records[0].subject, fontsize=10, color=INK, x=0.01, ha="left")
    return {"side_by_side": figure}


def side_by_side(records: Sequence[AnalysisResult]) -> pd.DataFrame:
    """The numbers behind it: model, frame, other, cosine; one model run in several ways has its revision and pooling in the name."""
    count = Counter(record.models[0]["name"] for record in records)
    made = []
    for record in records:
        facts = record.models[0]
        more = f" {facts.get('revision')} {facts.get('token_pooling')}" if count[facts["name"]] > 1 else ""
        made.append(record.tables["matrix"].assign(model=facts["name"] + more))
    return pd.concat(made, ignore_index=True)[["model", "frame", "other", "cosine"]]
