"""Plot recall by gallery and direction next to chance, and negation scores."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cardiobench.report.plots.style import FLOOR, FLOOR_LINE, INK, LINES, MODEL, subplots
from cardiobench.results.analysis_result import AnalysisResult

COLOURS = {"image to text": MODEL, "text to image": LINES[2]}
NOTES = {
    "recall": "Lines on the bars: 95 % intervals over patients, with fixed ranks.",
    "negation": "Lines: 95 % intervals over patients.",
}


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Draw recall with one panel per gallery, and negated findings if available."""
    recall, negation = record.tables["recall"], record.tables["negation"]
    title = (record.subject, record.models[0]["name"])
    figures = {"recall": _recall(recall[recall["measure"] != "median_rank"], title)}
    if len(negation):
        figures["negation"] = _negation(negation, title)
    return figures


def _recall(recall: pd.DataFrame, title: Sequence[str]) -> Figure:
    galleries = list(dict.fromkeys(recall["gallery"]))
    title = (*title, "share of the queries that find their partner")
    figure, panels = subplots(len(galleries), 1, height=1.8 * len(galleries) + 0.4, squeeze=False, title=title)
    for axes, gallery in zip(panels.flat, galleries, strict=True):
        _draw_recall(axes, recall[recall["gallery"] == gallery])
        axes.set_title(gallery)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=len(labels))
    return figure


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


def _negation(negation: pd.DataFrame, title: Sequence[str]) -> Figure:
    title = (*title, "true sentence before its negation", "(0.5: negation makes no difference)")
    figure, axes = subplots(height=0.8 + 0.35 * len(negation), title=title)
    height = -np.arange(len(negation))
    axes.axvline(0.5, **FLOOR_LINE)
    axes.hlines(height, negation["low"], negation["high"], color=MODEL, linewidth=1.8)
    axes.plot(negation["value"], height, "o", color=MODEL, markersize=6)
    axes.plot(negation["with"], height, "|", color=INK, markersize=9, label="recordings with it")
    axes.plot(negation["without"], height, "x", color=INK, markersize=6, label="recordings without")
    labels = [f"{row.finding}\n{row.n_with} with, {row.n_without} without" for row in negation.itertuples()]
    axes.set_yticks(height, labels)
    axes.set(ylim=(-len(negation) + 0.3, 0.7), xlim=(-0.03, 1.03))
    figure.legend(loc="outside lower left", ncols=2)
    axes.grid(axis="x")
    return figure
