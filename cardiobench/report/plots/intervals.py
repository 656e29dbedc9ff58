"""Draw values with intervals as forest plots."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import offset_copy

from cardiobench.report.plots.style import LINE_HEIGHT, MODEL, PAPER, PUBLISHED, WIDTH, fit, fixed_grid, text_width

ROW = 0.33  # Row height in inches.
BELOW = 0.5  # Space in inches for tick labels and the axis label.
GAP = 0.08
"""Space in inches between the legend and the label of the first row."""
CLEAR = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.6}
"""Background of labels, which interrupts the lines of floors."""
LABEL = WIDTH - 0.7  # Width in inches for the label of a row, left of the numbers.
BELOW_MARKERS = 1.5  # Drawing order between the lines of floors and the markers.


def interval_figure(rows: pd.DataFrame, *, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """Draw one row per value from top to bottom, with its label above and the number on the right.

    Args:
        rows: Table with the columns label, value, low, high (NaN if missing), hollow (bool) and published (bool, drawn
            as diamond).
        panels: Number of panels that share the rows; only the first is drawn.

    Returns:
        Figure and panels; call `place` when everything is drawn.
    """
    figure = Figure(figsize=(WIDTH, ROW * len(rows) + BELOW))
    first, *others = figure.subplots(1, panels, sharey=True, squeeze=False)[0]
    height = np.arange(len(rows) - 1, -1, -1)
    for (published, hollow), part in rows.assign(height=height).groupby(["published", "hollow"]):
        colour = PUBLISHED if published else MODEL
        first.hlines(part["height"], part["low"], part["high"], color=colour, linewidth=2)
        first.plot(
            part["value"],
            part["height"],
            "D" if published else "o",
            color=colour,
            markerfacecolor=PAPER if hollow else colour,
        )
    # As texts, both are drawn in a third of the time of tick labels and annotations.
    for x, across, up, align, texts in (
        (0, 0, 5, "baseline", [fit(text, LABEL) for text in rows["label"]]),
        (1, 4, 0, "center", _numbers(rows)),
    ):
        beside = offset_copy(first.get_yaxis_transform(), figure, x=across, y=up, units="points")
        for y, text in zip(height, texts, strict=True):
            first.text(x, y, text, va=align, transform=beside, zorder=BELOW_MARKERS, bbox=CLEAR)
    first.set_ylim(-0.4, len(rows) - 0.4)
    for axes in (first, *others):
        axes.grid(axis="x")
        axes.spines["left"].set_visible(False)
        axes.set_yticks([])
    return figure, [first, *others]


def place(figure: Figure, rows: pd.DataFrame) -> None:
    """Place the legend above the first panel, and fit margins and height to the texts.

    Args:
        figure: Figure from `interval_figure` with all contents drawn.
        rows: Rows passed to `interval_figure`.
    """
    panels, width = figure.axes, figure.get_figwidth()
    names = panels[0].get_legend_handles_labels()[1]
    left, numbers = 0.12, text_width(_numbers(rows)) + 0.12
    # Allow 0.6 inches for the line and the gap.
    columns = int(min(3, max(1, width / (text_width(names) + 0.6)))) if names else 1
    top = 0.1 + (GAP + LINE_HEIGHT * -(-len(names) // columns) if names else 0.0)
    figure.set_figheight(ROW * len(rows) + BELOW + top)
    right, between = (numbers, 0.0) if len(panels) == 1 else (0.12, numbers + 0.1)
    grid = fixed_grid(figure, 1, len(panels), left=left, right=right, bottom=BELOW, top=top, between=between)
    for column, axes in enumerate(panels):
        axes.set_subplotspec(grid[0, column])
    if names:
        above = offset_copy(panels[0].transAxes, figure, y=GAP)
        panels[0].legend(loc="lower left", bbox_to_anchor=(0, 1), bbox_transform=above, ncols=columns, borderaxespad=0)


def _numbers(rows: pd.DataFrame) -> list[str]:
    return ["undefined" if np.isnan(value) else f"{value:.2f}" for value in rows["value"]]
