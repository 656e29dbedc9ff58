"""Plot scores against operations per recording."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cardiobench.extensions.pareto.frontier import CostTable
from cardiobench.report.plots.style import FLOOR_LINE, GRID, INK, MODEL, MUTED, PAPER, shorten, subplots
from cardiobench.results.cost import short
from cardiobench.results.formatting import metric_name

LEFT = 8.0
"""Ratio between the smallest number of operations and the position of models without a network."""
RIGHT = 12.0
"""Ratio between the end of the axis and the largest number of operations, which reserves room for a name."""
CLOSE = 0.06
"""Fraction of the axis within which adjacent labels would overlap."""


def draw_costs(costs: CostTable) -> Figure:
    """Draw scores with intervals on a logarithmic cost axis, and the Pareto front as steps.

    Filled points are not worse than the best by the margin; for hollow points this is not shown.
    """
    first, table = costs.entries[0].result, costs.table
    shown = table[table["value"].notna() & (table["flops"].notna() | ~table["network"])].reset_index(drop=True)
    free = np.flatnonzero(~shown["network"])
    known = shown.loc[shown["network"], "flops"].to_numpy(dtype=np.float64)
    least, most = (float(known.min()), float(known.max())) if len(known) else (1e6, 1e6)
    place = shown["flops"].to_numpy(dtype=np.float64, copy=True)
    place[free] = least / LEFT * np.logspace(-0.2, 0.2, 2 * len(free) + 1)[1::2]  # Spread the points side by side.
    values, low, high = (
        first.number().factor * shown[name].to_numpy(dtype=np.float64) for name in ("value", "low", "high")
    )
    figure, axes = subplots(width=7.2, height=4.4)
    axes.set_xscale("log")
    axes.grid(color=GRID)
    axes.vlines(place, low, high, color=MUTED, linewidth=1.2, zorder=2)
    same = np.array([one is True for one in shown["not_worse"]], dtype=bool)
    for chosen, fill, text in (
        (same, MODEL, "not worse than the best by the margin"),
        (~same, PAPER, "not shown to be"),
    ):
        axes.plot(place[chosen], values[chosen], "o", color=MODEL, markerfacecolor=fill, zorder=4, label=text)
    front = np.flatnonzero(shown["front"])
    front = front[np.lexsort((values[front], place[front]))]
    if len(front):
        ends = np.append(place[front], RIGHT * most), np.append(values[front], values[front][-1])
        axes.step(*ends, where="post", color=INK, linewidth=1, zorder=1, label="Pareto front")
    if not np.isnan(first.floor.value):
        axes.axhline(first.number().factor * first.floor.value, **FLOOR_LINE, label="floor", zorder=1)
    _label(axes, place, values, [shorten(name, 30) for name in shown["model"]])
    _ticks(axes, known, bool(len(free)))
    axes.set_xlabel("floating-point operations per recording")
    axes.set_ylabel(f"{metric_name(first)}, 95 % interval over patients")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, borderaxespad=0)
    return figure


def _ticks(axes: Axes, known: np.ndarray, free: bool) -> None:
    """Add tick labels at the decades, and a label for models without a network."""
    least, most = (float(known.min()), float(known.max())) if len(known) else (1e6, 1e6)
    powers = range(int(np.ceil(np.log10(least / 3))), int(np.ceil(np.log10(most))) + 1) if len(known) else range(0)
    decades = [10.0**power for power in powers]
    axes.set_xticks(
        [*([least / LEFT] if free else []), *decades],
        [*(["no network"] if free else []), *(short(one) for one in decades)],
    )
    axes.minorticks_off()
    axes.set_xlim(least / LEFT / 3 if free else least / 3, most * RIGHT)
    if free and len(known):
        axes.axvline(least / LEFT**0.5, color=GRID, linestyle=":", zorder=0)


def _label(axes: Axes, place: np.ndarray, values: np.ndarray, names: list[str]) -> None:
    """Add names next to points, moving a name below the previous one if they would overlap."""
    step = CLOSE * float(np.ptp(axes.get_ylim()))
    box: dict[str, Any] = {"boxstyle": "square,pad=0.1", "facecolor": PAPER, "edgecolor": "none", "alpha": 0.8}
    taken: list[tuple[float, float]] = []
    for number in np.argsort(-values, kind="stable"):
        height = float(values[number])
        for other, at in taken:
            if abs(np.log10(place[number] / other)) < 1 and at - height < step:
                height = at - step
        taken.append((float(place[number]), height))
        at_point = (place[number], height)
        axes.annotate(
            names[number], at_point, (6, 8), textcoords="offset points", va="center", fontsize=7, bbox=box, zorder=5
        )
