"""What a representation study found: shared dimensions, maps by label and by dataset, how far to believe them."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cardiobench.report.plots.style import FLOOR, GRID, INK, MODEL, MUTED, subplots
from cardiobench.results.analysis_result import AnalysisResult

COLOURS = ("#0b6fa4", "#c2410c", "#15803d", "#7c3aed", "#b45309", "#0f766e", "#be185d", "#4d7c0f")
SHOWN_K = 50  # of which the paper's Figure 1 is
MEASURES = {
    "knn_agreement": "agreement of 10 neighbours",
    "centroid_separation": "centroid separation",
    "ari": "ARI of clusters",
    "silhouette": "silhouette",
}

WORDS = {"label": "label, all datasets (high is good)", "dataset": "dataset (low is good)"}


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """The figures that a record has tables for; a record of several models has their similarity only."""
    if "cka" in record.tables:
        return {"cka": _similarity(record)}
    figures = {"geometry": _geometry(record), "maps": _maps(record), "stability": _stability(record)}
    if "pairs" in record.tables and len(record.tables["pairs"]):
        figures["overlap"] = _overlap(record)
    return figures


def matrix(axes, table: pd.DataFrame, rows: list[str], columns: list[str], low: float, high: float) -> None:
    """Squares with their numbers; an empty one where there is none.

    Args:
        axes: of matplotlib.
        table: numbers, indexed by rows and columns.
        rows: from top to bottom.
        columns: from left to right.
        low: of the colours.
        high: of the colours.
    """
    values = table.reindex(index=rows, columns=columns).to_numpy(float)
    axes.imshow(values, cmap="Blues", vmin=low, vmax=high, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            ink = "white" if value > low + 0.6 * (high - low) else INK
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8, color=ink)
    axes.set_xticks(range(len(columns)), columns, fontsize=8, rotation=30, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), rows, fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _overlap(record: AnalysisResult) -> Figure:
    """Left: the shared part at each k with its interval, chance and the floor of shuffled labels. Right: pairs at 50."""
    pairs = record.tables["pairs"]
    ks = sorted(pairs["k"].unique())
    k = SHOWN_K if SHOWN_K in ks else ks[-1]
    figure, (left, right) = subplots(1, 2, figsize=(9.2, 3.8), width_ratios=(1.0, 1.1), layout="constrained")
    for place, step in enumerate(ks):
        found = record.values[f"overlap_at_{step}"]
        left.plot([place, place], [found.low, found.high], color=MODEL, linewidth=2, solid_capstyle="butt")
        left.plot(place, found.value, "o", color=MODEL, markersize=8, label="this model" if not place else None)
        for key, style, colour, name in (
            ("shuffled", "--", FLOOR, "same classifier, shuffled labels"),
            ("chance", ":", MUTED, "chance (k of all dimensions)"),
        ):
            level = record.values[f"{key}_at_{step}"].value
            left.hlines(
                level, place - 0.3, place + 0.3, color=colour, linestyle=style, label=name if not place else None
            )
    left.set_xticks(range(len(ks)), [f"top {step}" for step in ks], fontsize=9)
    left.set_xlim(-0.6, len(ks) - 0.4)
    left.set_ylim(0, 1.03)
    left.set_ylabel("shared by two datasets, mean over pairs", fontsize=9)
    left.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.08))
    left.grid(axis="y", color=GRID, linewidth=0.8)
    left.spines[["top", "right"]].set_visible(False)
    one = pairs[pairs["k"] == k]
    both = pd.concat([one, one.rename(columns={"dataset": "other", "other": "dataset"})])
    names = sorted(set(both["dataset"]))
    table = both.pivot_table(index="dataset", columns="other", values="shared")
    matrix(right, table, names, names, 0, 1)
    right.set_title(f"shared top {k}", fontsize=9, color=INK, loc="left")
    chosen = f"{record.options['classifier']} of {record.options['trained_on']}"
    figure.suptitle(f"{_title(record)}   explained: {chosen}", fontsize=10, color=INK, x=0.01, ha="left")
    return figure


def _maps(record: AnalysisResult) -> Figure:
    """A column a setting; the same points above by label, below by dataset where there are several."""
    table = record.tables["maps"]
    settings = list(dict.fromkeys(table["setting"]))
    kinds = ("label", "dataset") if table["dataset"].nunique() > 1 else ("label",)
    size = (2.6 * len(settings) + 1.6, 0.4 + 2.6 * len(kinds))
    figure, grid = subplots(len(kinds), len(settings), figsize=size, squeeze=False, layout="constrained")
    for row, column in enumerate(kinds):
        names = list(dict.fromkeys(table[column].astype(str)))
        for axes, setting in zip(grid[row], settings, strict=True):
            part = table[table["setting"] == setting]
            # Shuffled, so that what is drawn last does not hide the rest.
            part = part.sample(frac=1, random_state=0)
            colour = part[column].astype(str).map(dict(zip(names, _colours(len(names)), strict=True)))
            axes.scatter(part["x"], part["y"], c=colour.tolist(), s=5, alpha=0.6, linewidths=0)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines[:].set_color(GRID)
            if not row:
                axes.set_title(setting, fontsize=8.5, color=INK)
        marks = [
            Line2D([], [], marker="o", linestyle="", color=colour, markersize=5, label=name)
            for name, colour in zip(names, _colours(len(names)), strict=True)
        ]
        grid[row][-1].legend(
            handles=marks, fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), title=f"by {column}"
        )
    figure.suptitle(f"{_title(record)}   UMAP, for the eye only", fontsize=10, color=INK, x=0.01, ha="left")
    return figure


def _stability(record: AnalysisResult) -> Figure:
    """Left: trustworthiness of each picture. Right: Procrustes disparity of each two."""
    table = record.tables["stability"].fillna({"other": ""})
    trust = table[table["measure"] == "trustworthiness"]
    names = trust["setting"].tolist()
    figure, (left, right) = subplots(1, 2, figsize=(9.2, 0.9 + 0.5 * len(names)), layout="constrained")
    height = -np.arange(len(names))
    left.hlines(height, 0.5, trust["value"], color=GRID, linewidth=1)
    left.plot(trust["value"], height, "o", color=MODEL, markersize=6)
    for y, value in zip(height, trust["value"], strict=True):
        left.annotate(f"{value:.2f}", (value, y), xytext=(0, 6), textcoords="offset points", ha="center", fontsize=8)
    left.set_yticks(height, names, fontsize=8)
    left.set_xlim(0.5, 1.02)
    left.set_ylim(height[-1] - 0.6, 0.8)
    left.set_title("trustworthiness (1: no false neighbour)", fontsize=9, color=INK, loc="left")
    left.spines[["top", "right", "left"]].set_visible(False)
    pairs = table[table["measure"] == "procrustes"]
    both = pd.concat([pairs, pairs.rename(columns={"setting": "other", "other": "setting"})])
    matrix(right, both.pivot_table(index="setting", columns="other", values="value"), names, names, 0, 1)
    right.set_title("Procrustes disparity (0: the same shape)", fontsize=9, color=INK, loc="left")
    figure.suptitle(_title(record), fontsize=10, color=INK, x=0.01, ha="left")
    return figure


def _geometry(record: AnalysisResult) -> Figure:
    """A panel a measure: by label (high is good), by dataset (low is good), by label inside each dataset."""
    table = record.tables["geometry"]
    levels = list(dict.fromkeys(table["level"]))
    figure, grid = subplots(
        1, len(MEASURES), figsize=(2.5 * len(MEASURES) + 1, 1.2 + 0.34 * len(levels)), sharey=True, layout="constrained"
    )
    height = -np.arange(len(levels))
    for axes, (measure, title) in zip(grid, MEASURES.items(), strict=True):
        values = table[table["measure"] == measure].set_index("level")["value"].reindex(levels)
        colours = [FLOOR if level == "dataset" else MODEL for level in levels]
        axes.hlines(height, 0, values, color=GRID, linewidth=1)
        axes.scatter(values, height, c=colours, s=34, zorder=3)
        if measure == "knn_agreement":
            chance = table[table["measure"] == "chance"].set_index("level")["value"].reindex(levels)
            axes.scatter(chance, height, marker="|", c=INK, s=70, label="chance")
            axes.legend(fontsize=7, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.22))
        axes.axvline(0, color=MUTED, linewidth=0.8)
        axes.set_title(title, fontsize=9, color=INK)
        axes.set_yticks(height, [WORDS.get(level, level) for level in levels], fontsize=8)
        axes.tick_params(length=0, labelsize=8)
        axes.spines[["top", "right", "left"]].set_visible(False)
    figure.suptitle(_title(record), fontsize=10, color=INK, x=0.01, ha="left")
    return figure


def _similarity(record: AnalysisResult) -> Figure:
    """Linear CKA of each two models over all records."""
    table = record.tables["cka"]
    whole = table.groupby(["model", "other"], sort=False).tail(1)
    names = list(dict.fromkeys([*whole["model"], *whole["other"]]))
    both = pd.concat([whole, whole.rename(columns={"model": "other", "other": "model"})])
    size = 1.8 + 0.7 * len(names)
    figure, axes = subplots(figsize=(size + 1.6, size), layout="constrained")
    matrix(axes, both.pivot_table(index="model", columns="other", values="linear_cka"), names, names, 0, 1)
    axes.set_title(f"{record.subject}   linear CKA (1: the same up to a turn)", fontsize=10, color=INK, loc="left")
    return figure


def _colours(count: int) -> list[str]:
    return [COLOURS[number % len(COLOURS)] for number in range(count)]


def _title(record: AnalysisResult) -> str:
    return f"{record.subject}   {record.models[0]['name']}"
