"""Plot shared dimensions, UMAP maps by label and dataset, and map stability."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cardiobench.report.plots.style import (
    FLOOR,
    GRID,
    INK,
    LINES,
    MODEL,
    MUTED,
    RASTERIZE_ABOVE,
    heatmap,
    subplots,
)
from cardiobench.results.analysis_result import AnalysisResult

PAIRS_K = 50  # Number of dimensions k for pairs of datasets, as in Figure 1 of the paper.
MEASURES = {
    "knn_agreement": "agreement of 10 neighbours",
    "centroid_separation": "centroid separation",
    "ari": "ARI of clusters",
    "silhouette": "silhouette",
}
LEVELS = {"label": "label, all datasets (high is good)", "dataset": "dataset (low is good)"}
FLOORS = {
    "shuffled": ("--", FLOOR, "same classifier, shuffled labels"),
    "chance": (":", MUTED, "chance (k of all dimensions)"),
}


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Draw the tables of a record; a record of several models only has their similarity."""
    if "cka" in record.tables:
        return {"cka": _similarity(record)}
    figures = {"geometry": _geometry(record), "maps": _maps(record)}
    if record.tables["maps"]["setting"].nunique() > 1:
        figures["stability"] = _stability(record)
    if "pairs" in record.tables and len(record.tables["pairs"]):
        figures["overlap"] = _overlap(record)
    return figures


def _symmetric(pairs: pd.DataFrame, one: str, other: str, value: str, names: list[str]) -> pd.DataFrame:
    """Convert a table of unordered pairs to a symmetric matrix (names, names), NaN for missing pairs."""
    both = pd.concat([pairs, pairs.rename(columns={one: other, other: one})])
    return both.pivot_table(index=one, columns=other, values=value).reindex(index=names, columns=names)


def _overlap(record: AnalysisResult) -> Figure:
    """Draw the shared fraction for each k with its interval and floors, and pairs of datasets at the right."""
    pairs = record.tables["pairs"]
    ks = sorted(pairs["k"].unique())
    chosen = f"{record.options['classifier']} of {record.options['trained_on']}"
    title = f"{_title(record)}   explained: {chosen}"
    figure, (left, right) = subplots(1, 2, figsize=(9.2, 3.8), width_ratios=(1.0, 1.1), title=title)
    for x, k in enumerate(ks):
        overlap, first = record.values[f"overlap_at_{k}"], x == 0
        left.vlines(x, overlap.low, overlap.high, color=MODEL, linewidth=2)
        left.plot(x, overlap.value, "o", color=MODEL, markersize=8, label="this model" if first else None)
        for key, (style, colour, name) in FLOORS.items():
            level, label = record.values[f"{key}_at_{k}"].value, name if first else None
            left.hlines(level, x - 0.3, x + 0.3, color=colour, linestyle=style, label=label)
    left.set_xticks(range(len(ks)), [f"top {k}" for k in ks])
    left.set(xlim=(-0.6, len(ks) - 0.4), ylim=(0, 1.03), ylabel="shared by two datasets, mean over pairs")
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08))
    left.grid(axis="y")
    k = PAIRS_K if PAIRS_K in ks else ks[-1]
    names = sorted({*pairs["dataset"], *pairs["other"]})
    shared = _symmetric(pairs[pairs["k"] == k], "dataset", "other", "shared", names)
    heatmap(right, shared, names, names, rotation=30)
    right.set_title(f"shared top {k}")
    return figure


def _maps(record: AnalysisResult) -> Figure:
    """Draw one column of maps per setting, coloured by label and, for several datasets, by dataset."""
    table = record.tables["maps"]
    settings = list(dict.fromkeys(table["setting"]))
    rows = ("label", "dataset") if table["dataset"].nunique() > 1 else ("label",)
    size, title = (2.6 * len(settings) + 1.6, 0.4 + 2.6 * len(rows)), f"{_title(record)}   UMAP, for the eye only"
    figure, grid = subplots(len(rows), len(settings), figsize=size, squeeze=False, title=title)
    for row, column in zip(grid, rows, strict=True):
        names = list(dict.fromkeys(table[column].astype(str)))
        colours = {name: LINES[number % len(LINES)] for number, name in enumerate(names)}
        for axes, setting in zip(row, settings, strict=True):
            # Draw points in random order, so that no group covers another.
            points = table[table["setting"] == setting].sample(frac=1, random_state=0)
            shades = points[column].astype(str).map(colours).tolist()
            axes.scatter(points["x"], points["y"], c=shades, s=5, alpha=0.6, linewidths=0,
                         rasterized=len(points) > RASTERIZE_ABOVE)  # fmt: skip
            axes.set(xticks=[], yticks=[], title=setting if column == "label" else "")
            axes.spines[:].set(color=GRID, visible=True)
        handles = [
            Line2D([], [], marker="o", linestyle="", color=colour, markersize=5, label=name)
            for name, colour in colours.items()
        ]
        row[-1].legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), title=f"by {column}")
    return figure


def _stability(record: AnalysisResult) -> Figure:
    """Draw the trustworthiness of each map and the Procrustes disparity of each pair."""
    table = record.tables["stability"].fillna({"other": ""})
    trust = table[table["measure"] == "trustworthiness"]
    names = trust["setting"].tolist()
    figure, (left, right) = subplots(1, 2, figsize=(9.2, 0.9 + 0.5 * len(names)), title=_title(record))
    height = -np.arange(len(names))
    left.hlines(height, 0.5, trust["value"], color=GRID, linewidth=1)
    left.plot(trust["value"], height, "o", color=MODEL)
    for y, value in zip(height, trust["value"], strict=True):
        left.annotate(f"{value:.2f}", (value, y), (0, 6), textcoords="offset points", ha="center")
    left.set_yticks(height, names)
    left.set(xlim=(0.5, 1.02), ylim=(height[-1] - 0.6, 0.8), title="trustworthiness (1: no false neighbour)")
    left.spines["left"].set_visible(False)
    disparity = _symmetric(table[table["measure"] == "procrustes"], "setting", "other", "value", names)
    heatmap(right, disparity, names, names, rotation=30)
    right.set_title("Procrustes disparity (0: the same shape)")
    return figure


def _geometry(record: AnalysisResult) -> Figure:
    """Draw one panel per measure: by label (high is good), by dataset (low is good), and by label within datasets."""
    table = record.tables["geometry"].pivot_table(index="level", columns="measure", values="value", sort=False)
    levels = list(dict.fromkeys(record.tables["geometry"]["level"]))
    table = table.reindex(index=levels, columns=[*MEASURES, "chance"])
    size = (2.5 * len(MEASURES) + 1, 1.4 + 0.34 * len(levels))
    figure, panels = subplots(1, len(MEASURES), figsize=size, sharey=True, title=_title(record))
    height = -np.arange(len(levels))
    for axes, (measure, title) in zip(panels, MEASURES.items(), strict=True):
        axes.hlines(height, 0, table[measure], color=GRID, linewidth=1)
        axes.scatter(
            table[measure], height, c=[FLOOR if level == "dataset" else MODEL for level in levels], s=34, zorder=3
        )
        if measure == "knn_agreement":
            axes.scatter(table["chance"], height, marker="|", c=INK, s=70, label="chance")
        axes.axvline(0, color=MUTED, linewidth=0.8)
        axes.set_title(title)
        axes.set_yticks(height, [LEVELS.get(level, level) for level in levels])
        axes.tick_params(length=0)
        axes.spines["left"].set_visible(False)
    figure.legend(loc="outside lower left")
    return figure


def _similarity(record: AnalysisResult) -> Figure:
    """Draw linear CKA between all pairs of models over all records."""
    table = record.tables["cka"]
    whole = table.groupby(["model", "other"], sort=False).tail(1)
    names = list(dict.fromkeys([*whole["model"], *whole["other"]]))
    size = 1.8 + 0.7 * len(names)
    figure, axes = subplots(figsize=(size + 1.6, size))
    heatmap(axes, _symmetric(whole, "model", "other", "linear_cka", names), names, names, rotation=30)
    axes.set_title(f"{record.subject}   linear CKA (1: the same up to a turn)")
    return figure


def _title(record: AnalysisResult) -> str:
    return f"{record.subject}   {record.models[0]['name']}"
