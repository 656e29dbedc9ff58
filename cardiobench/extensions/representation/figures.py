"""Plot shared dimensions, UMAP maps by label and dataset, and map stability."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cardiobench.report.plots.style import (
    FLOOR,
    GRID,
    INK,
    LINE_HEIGHT,
    LINES,
    MODEL,
    MUTED,
    RASTERIZE_ABOVE,
    heatmap,
    shorten,
    subplots,
)
from cardiobench.results.analysis_result import AnalysisResult

MOST_TEXTS = 12  # Maximum number of models with a text in each square.
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
NOTES = {"overlap": "Lines: 95 % intervals over patients."}


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
    """Draw the shared fraction for each k with its interval and floors, and pairs of datasets below."""
    pairs = record.tables["pairs"]
    ks = sorted(pairs["k"].unique())
    chosen = f"{record.options['classifier']} of {record.options['trained_on']}"
    names = sorted({*pairs["dataset"], *pairs["other"]})
    heights, title = (2.8, 1.1 + 0.35 * len(names)), (*_title(record), f"explained: {chosen}")
    figure, (above, below) = subplots(2, 1, height=sum(heights), height_ratios=heights, title=title)
    for x, k in enumerate(ks):
        overlap, first = record.values[f"overlap_at_{k}"], x == 0
        above.vlines(x, overlap.low, overlap.high, color=MODEL, linewidth=2)
        above.plot(x, overlap.value, "o", color=MODEL, markersize=8, label="this model" if first else None)
        for key, (style, colour, name) in FLOORS.items():
            level, label = record.values[f"{key}_at_{k}"].value, name if first else None
            above.hlines(level, x - 0.3, x + 0.3, color=colour, linestyle=style, label=label)
    above.set_xticks(range(len(ks)), [f"top {k}" for k in ks])
    above.set(xlim=(-0.6, len(ks) - 0.4), ylim=(0, 1.03), ylabel="shared, mean over pairs")
    above.legend(loc="upper left", bbox_to_anchor=(0, -0.1))
    above.grid(axis="y")
    k = PAIRS_K if PAIRS_K in ks else ks[-1]
    shared = _symmetric(pairs[pairs["k"] == k], "dataset", "other", "shared", names)
    heatmap(below, shared, names, names, rotation=30)
    below.set_title(f"shared top {k}")
    return figure


def _maps(record: AnalysisResult) -> Figure:
    """Draw one row of maps per setting, coloured by label and, for several datasets, by dataset."""
    table = record.tables["maps"]
    settings = list(dict.fromkeys(table["setting"]))
    columns = {name: list(dict.fromkeys(table[name].astype(str))) for name in ("label", "dataset")}
    if len(columns["dataset"]) == 1:
        del columns["dataset"]
    height = 1.9 * len(settings) + 0.3 + 0.17 * max(map(len, columns.values()))
    title = (*_title(record), "UMAP, for the eye only")
    figure, grid = subplots(len(settings), len(columns), height=height, squeeze=False, title=title)
    for panels, (column, names) in zip(grid.T, columns.items(), strict=True):
        colours = {name: LINES[number % len(LINES)] for number, name in enumerate(names)}
        for axes, setting in zip(panels, settings, strict=True):
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
        panels[-1].legend(
            handles=handles, loc="upper left", bbox_to_anchor=(0, 0), title=f"by {column}", alignment="left"
        )
    return figure


def _stability(record: AnalysisResult) -> Figure:
    """Draw the trustworthiness of each map and the Procrustes disparity of each pair."""
    table = record.tables["stability"].fillna({"other": ""})
    trust = table[table["measure"] == "trustworthiness"]
    names = trust["setting"].tolist()
    figure, (above, below) = subplots(2, 1, height=1.6 + 0.75 * len(names), title=_title(record))
    height = -np.arange(len(names))
    above.hlines(height, 0.5, trust["value"], color=GRID, linewidth=1)
    above.plot(trust["value"], height, "o", color=MODEL)
    for y, value in zip(height, trust["value"], strict=True):
        above.annotate(f"{value:.2f}", (value, y), (0, 6), textcoords="offset points", ha="center")
    above.set_yticks(height, names)
    above.set(xlim=(0.5, 1.02), ylim=(height[-1] - 0.6, 0.8), title="trustworthiness\n(1: no false neighbour)")
    above.spines["left"].set_visible(False)
    disparity = _symmetric(table[table["measure"] == "procrustes"], "setting", "other", "value", names)
    heatmap(below, disparity, names, names, rotation=30)
    below.set_title("Procrustes disparity\n(0: the same shape)")
    return figure


def _geometry(record: AnalysisResult) -> Figure:
    """Draw one panel per measure: by label (high is good), by dataset (low is good), and by label within datasets."""
    table = record.tables["geometry"].pivot_table(index="level", columns="measure", values="value", sort=False)
    levels = list(dict.fromkeys(record.tables["geometry"]["level"]))
    table = table.reindex(index=levels, columns=[*MEASURES, "chance"])
    size = len(MEASURES) * (0.6 + 0.2 * len(levels)) + 0.2
    figure, panels = subplots(len(MEASURES), 1, height=size, title=_title(record))
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
    numbers = [str(number) for number, _ in enumerate(names, start=1)]
    figure, axes = subplots(height=3.0 + LINE_HEIGHT * len(names), title=(record.subject,))
    values = _symmetric(whole, "model", "other", "linear_cka", names)
    heatmap(axes, values, numbers, numbers, **({"texts": np.full(values.shape, "")} if len(names) > MOST_TEXTS else {}))
    axes.set_title("linear CKA (1: the same up to a turn)")
    listed = (f"{number}  {shorten(name)}" for number, name in zip(numbers, names, strict=True))
    axes.set_xlabel("\n".join(listed), loc="left")
    return figure


def _title(record: AnalysisResult) -> tuple[str, str]:
    return record.subject, record.models[0]["name"]
