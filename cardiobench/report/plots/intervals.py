"""Rows of values with their intervals: the forest plots of the report."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from cardiobench.report.plots.style import MODEL, PAPER, PUBLISHED

ROW_HEIGHT = 0.23  # Inches.


def draw_intervals(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw one row per value from the top down, with its label at the left and the number at the right.

    Args:
        axes: Axes to draw in.
        rows: Label, value, low, high (NaN where there is none), hollow (bool) and published (bool; a diamond).
    """
    height = np.arange(len(rows) - 1, -1, -1)
    for (published, hollow), part in rows.assign(height=height).groupby(["published", "hollow"]):
        colour = PUBLISHED if published else MODEL
        axes.hlines(part["height"], part["low"], part["high"], color=colour, linewidth=2)
        axes.plot(
            part["value"],
            part["height"],
            "D" if published else "o",
            color=colour,
            markerfacecolor=PAPER if hollow else colour,
        )
    for y, value in zip(height, rows["value"], strict=True):
        text = "undefined" if np.isnan(value) else f"{value:.2f}"
        axes.annotate(text, (1, y), (4, 0), axes.get_yaxis_transform(), "offset points", va="center")
    axes.set_yticks(height, rows["label"])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.grid(axis="x")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
