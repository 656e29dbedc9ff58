"""Plot recall by gallery and direction beside chance, and negation scores."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cardiobench.report.plots.style import FLOOR, FLOOR_LINE, INK, LINES, MODEL, subplots
from cardiobench.results.analysis_result import AnalysisResult

COLOURS = {"image to text": MODEL, "text to image": LINES[2]}


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Draw one panel per gallery and one for negated findings."""
    recall, negation = record.tables["recall"], record.tables["negation"]
    recall = recall[recall["measure"] != "median_rank"]
    galleries = list(dict.fromkeys(recall["gallery"]))
    widths = [1.0] * len(galleries) + ([1.5] if len(negation) else [])
    title = f"{record.subject}   {record.models[0]['name']}"
    size = (1.0 + 2.6 * sum(widths), 3.7)
    figure, ((*panels,),) = subplots(1, len(widths), figsize=size, width_ratios=widths, squeeze=False, title=title)
    for axes, gallery in zip(panels, galleries, strict=False):
        _draw_recall(axes, recall[recall["gallery"] == gallery])
        axes.set_title(gallery.replace(", ", ",\n"))
    panels[0].set_ylabel("share of the queries that find their partner")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=len(labels))
    if len(negation):
        _draw_negation(panels[-1], negation)
    return {"recall": figure}


def _draw_recall(axes: Axes, recall: pd.DataFrame) -> None:
    measures = list(dict.fromkeys(recall["measure"]))
    for direction, part in recall.groupby("direction", sort=False):
        shift = 0.36 * (list(COLOURS).index(direction) - 0.5)
        x = np.arange(len(measures)) + shift
        spread = [part["value"] - part["low"], part["high"] - part["value"]]
        axes.bar(x, part["value"], 0.34, color=COLOURS[direction], alpha=0.75, label=direction)
        axes.errorbar(x, part["value"], spread, fmt="none", ecolor=INK, elinewidth=1, capsize=2)
        label = "chance" if shift < 0 else "_"
        axes.hlines(part["chance"], x - 0.17, x + 0.17, color=FLOOR, linewidth=2, label=label)
    axes.set_xticks(range(len(measures)), [f"@{name.rpartition('_')[2]}" for name in measures])
    axes.set_ylim(0, 1)
    axes.grid(axis="y")


def _draw_negation(axes: Axes, negation: pd.DataFrame) -> None:
    height = -np.arange(len(negation))
    axes.axvline(0.5, **FLOOR_LINE)
    axes.hlines(height, negation["low"], negation["high"], color=MODEL, linewidth=1.8)
    axes.plot(negation["value"], height, "o", color=MODEL, markersize=6)
    axes.plot(negation["with"], height, "|", color=INK, markersize=9, label="recordings with it")
    axes.plot(negation["without"], height, "x", color=INK, markersize=6, label="recordings without")
    labels = [f"{row.finding}\n{row.n_with} with, {row.n_without} without" for row in negation.itertuples()]
    axes.set_yticks(height, labels)
    axes.set(ylim=(-len(negation) + 0.3, 0.7), xlim=(-0.03, 1.03))
    axes.set_title("true sentence before its negation\n(0.5: negation makes no difference)")
    axes.legend()
    axes.grid(axis="x")
