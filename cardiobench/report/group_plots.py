"""Pictures of subgroups: absolute errors as boxes where the answer is a number, scores with intervals where it is a class."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cardiobench.data.spec import Task
from cardiobench.report import plots, tables
from cardiobench.report.plots import FLOOR, INK, MODEL, MUTED
from cardiobench.report.result import Breakdown, Result
from cardiobench.scoring.groups import split_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORST = FLOOR


def subgroups(result: Result, predictions: pd.DataFrame, task: Task, path: Path) -> Path:
    """One panel a breakdown with the gap between its best and its worst group (arXiv:2510.00520, Figure 3).

    Args:
        result: with at least one breakdown.
        predictions: of the result, with the columns of the groups.
        task: of the result.
        path: of the picture.
    """
    shown = {group.name: group for group in task.groups if group.name in result.groups}
    figure, panels = plots.pyplot().subplots(
        1, len(shown), figsize=(1.2 + 2.6 * len(shown), 3.8), sharey=True, squeeze=False, layout="constrained"
    )
    for axes, (name, group) in zip(panels[0], shown.items(), strict=True):
        breakdown = result.groups[name]
        if task.kind == "regression":
            rows = split_rows(group, predictions).rows
            error = np.abs(predictions["y_pred"].to_numpy(float) - predictions["y_true"].to_numpy(float))
            _boxes(axes, {label: error[rows[label]] for label in breakdown.values}, breakdown.worst)
        else:
            _points(axes, breakdown, result)
        labels = [f"{label}\nn={found.n}" for label, found in breakdown.values.items()]
        axes.set_xticks(range(1, len(labels) + 1), labels, fontsize=8)
        axes.set_xlim(0.4, len(labels) + 0.6)
        axes.set_title(f"{name.replace('_', ' ')}\n{gap_text(breakdown, result)}", fontsize=8, color=INK, loc="left")
        axes.grid(axis="y", color="#e5e7eb", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(colors=MUTED, labelcolor=INK)
        axes.spines[["top", "right"]].set_visible(False)
    label = f"absolute error ({result.unit})" if task.kind == "regression" else tables.metric_name(result)
    panels[0][0].set_ylabel(label, fontsize=9)
    figure.suptitle(
        f"{result.task}   {result.model['name']}, {tables.protocol_name(result)}   (worst group in orange)",
        fontsize=10,
        color=INK,
        x=0.01,
        ha="left",
    )
    return plots.save(figure, path)


def gap_text(breakdown: Breakdown, result: Result) -> str:
    """The gap with its interval, or why there is none."""
    gap = breakdown.gap
    if np.isnan(gap.value):
        return f"no gap: {gap.reason}"
    ends = f" [{tables.number(gap.low, result)}, {tables.number(gap.high, result)}]" if not np.isnan(gap.low) else ""
    return f"gap {tables.number(gap.value, result)}{ends}"


def _boxes(axes: "Axes", errors: dict[str, np.ndarray], worst: str) -> None:
    drawn = axes.boxplot(list(errors.values()), widths=0.55, patch_artist=True, showfliers=False)
    for label, box, middle in zip(errors, drawn["boxes"], drawn["medians"], strict=True):
        box.set(facecolor=WORST if label == worst else MODEL, alpha=0.35, edgecolor=INK, linewidth=0.8)
        middle.set(color=INK, linewidth=1.4)
    for place, values in enumerate(errors.values(), start=1):
        sideways = place + 0.36 * (np.arange(len(values)) % 7 / 6 - 0.5)
        axes.plot(sideways, values, "o", color=INK, alpha=0.35, markersize=2.2, markeredgewidth=0)
        axes.plot(place, values.mean(), "D", color="white", markeredgecolor=INK, markersize=5)
    axes.set_ylim(bottom=0)


def _points(axes: "Axes", breakdown: Breakdown, result: Result) -> None:
    scale = plots.factor(result)
    for place, (label, found) in enumerate(breakdown.values.items(), start=1):
        colour = WORST if label == breakdown.worst else MODEL
        axes.plot([place, place], [scale * found.low, scale * found.high], color=colour, linewidth=2)
        axes.plot(place, scale * found.value, "o", color=colour, markersize=7)
