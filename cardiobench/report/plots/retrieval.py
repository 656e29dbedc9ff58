"""Recall of every gallery and direction beside chance, and how often the true sentence beats its negation."""

import numpy as np
from matplotlib.figure import Figure

from cardiobench.report.plots.style import FLOOR, GRID, INK, MODEL, MUTED, subplots
from cardiobench.results.analysis_result import AnalysisResult

COLOURS = {"image to text": MODEL, "text to image": "#15803d"}


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """One panel a gallery, one panel for the findings."""
    recall, told = record.tables["recall"], record.tables["negation"]
    recall = recall[recall["measure"] != "median_rank"]
    galleries = list(dict.fromkeys(recall["gallery"]))
    wide = [1.0] * len(galleries) + ([1.5] if len(told) else [])
    figure, panels = subplots(
        1, len(wide), figsize=(1.0 + 2.6 * sum(wide), 3.7), width_ratios=wide, squeeze=False, layout="constrained"
    )
    for axes, gallery in zip(panels[0], galleries, strict=False):
        _recall(axes, recall[recall["gallery"] == gallery])
        axes.set_title(gallery.replace(", ", ",\n"), fontsize=9, color=INK, loc="left")
    panels[0][0].set_ylabel("share of the queries that find their partner", fontsize=9)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8, frameon=False, loc="outside lower left", ncols=len(labels))
    if len(told):
        _negation(panels[0][-1], told)
    for axes in panels[0]:
        axes.tick_params(labelsize=8, colors=MUTED, labelcolor=INK)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{record.subject}   {record.models[0]['name']}", fontsize=10, color=INK, x=0.01, ha="left")
    return {"recall": figure}


def _recall(axes, part) -> None:
    measures = list(dict.fromkeys(part["measure"]))
    directions = list(COLOURS)
    for direction, line in part.groupby("direction", sort=False):
        shift = 0.36 * (directions.index(direction) - 0.5)
        place = np.arange(len(measures)) + shift
        spread = [line["value"] - line["low"], line["high"] - line["value"]]
        axes.bar(place, line["value"], 0.34, color=COLOURS[direction], alpha=0.75, label=direction)
        axes.errorbar(place, line["value"], spread, fmt="none", ecolor=INK, elinewidth=1, capsize=2)
        axes.hlines(
            line["chance"], place - 0.17, place + 0.17, color=FLOOR, linewidth=2, label="chance" if shift < 0 else None
        )
    axes.set_xticks(range(len(measures)), [f"@{name.rpartition('_')[2]}" for name in measures])
    axes.set_ylim(0, 1)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)


def _negation(axes, told) -> None:
    height = -np.arange(len(told))
    axes.axvline(0.5, color=FLOOR, linestyle="--", linewidth=1.2)
    axes.hlines(height, told["low"], told["high"], color=MODEL, linewidth=1.8)
    axes.plot(told["value"], height, "o", color=MODEL, markersize=6)
    axes.plot(told["with"], height, "|", color=INK, markersize=9, label="recordings with it")
    axes.plot(told["without"], height, "x", color=INK, markersize=6, label="recordings without")
    labels = [f"{row.finding}\n{row.n_with} with, {row.n_without} without" for row in told.itertuples()]
    axes.set_yticks(height, labels, fontsize=8)
    axes.set_ylim(-len(told) + 0.3, 0.7)
    axes.set_xlim(-0.03, 1.03)
    axes.set_title('true sentence before its negation\n(0.5: no ear for "no")', fontsize=9, color=INK, loc="left")
    axes.legend(fontsize=7, frameon=False, loc="best")
    axes.grid(axis="x", color=GRID, linewidth=0.8)
