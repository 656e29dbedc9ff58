"""Pictures of results: scores beside their floors, predictions beside the truth. matplotlib is imported when one is drawn."""

from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.errors import MissingExtra
from cardiobench.report import tables
from cardiobench.report.result import Result

INK, MUTED, MODEL, FLOOR = "#1b1f24", "#6b7280", "#0b6fa4", "#c2410c"
DPI = 130


def pyplot():
    """matplotlib.pyplot, drawing into files; `MissingExtra` where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("drawing the report's pictures", "analysis", "matplotlib") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _label(result: Result) -> str:
    return f"{result.model['name']}\n{tables.protocol_name(result)}"


def factor(result: Result) -> float:
    """What a value is multiplied with in a picture: fractions are shown in percent."""
    return 100.0 if result.metric in tables.FRACTIONS else 1.0


def save(figure, path: Path) -> Path:
    """Write a picture and forget it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI, bbox_inches="tight", facecolor="white")
    figure.clear()
    pyplot().close(figure)
    return path


def save_all(figure, path: Path) -> list[Path]:
    """Write a picture as PNG and SVG beside a path, and forget it."""
    files = [path.with_suffix(f".{ending}") for ending in ("png", "svg")]
    for file in files:
        figure.savefig(file, dpi=DPI, bbox_inches="tight", facecolor="white")
    pyplot().close(figure)
    return files


def forest(results: list[Result], path: Path) -> Path:
    """Scores of all models on one task with 95 % intervals, the best constant as a line; hollow = collapsed."""
    plt = pyplot()
    results = tables.ordered(results)[::-1]
    first, scale = results[0], factor(results[0])
    figure, axes = plt.subplots(figsize=(7, 1.2 + 0.55 * len(results)))
    constant = first.floors["best_constant"].value * scale
    axes.axvline(constant, color=FLOOR, linestyle="--", linewidth=1.4, label=f"best constant {constant:.2f}", zorder=1)
    for height, result in enumerate(results):
        estimate = result.score
        value, low, high = (scale * number for number in (estimate.value, estimate.low, estimate.high))
        axes.plot([low, high], [height, height], color=MODEL, linewidth=2, solid_capstyle="butt", zorder=2)
        face = "white" if result.collapsed else MODEL
        axes.plot(
            value, height, "o", markersize=8, markerfacecolor=face, markeredgecolor=MODEL, markeredgewidth=1.8, zorder=3
        )
        axes.annotate(
            f"{value:.2f}",
            (value, height),
            xytext=(0, 8),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color=INK,
        )
    axes.set_yticks(range(len(results)), [_label(result) for result in results], fontsize=8)
    axes.set_ylim(-0.7, len(results) - 0.3)
    axes.set_xlabel(
        f"{tables.metric_name(first)}   (bar: 95 % interval over patients; hollow: constant predictions)", fontsize=8
    )
    axes.set_title(
        f"{first.task}   n = {first.score.n} ({first.score.n_patients} patients)", fontsize=10, color=INK, loc="left"
    )
    axes.legend(fontsize=8, loc="best", frameon=False)
    axes.grid(axis="x", color="#e5e7eb", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    return save(figure, path)


def agreement(result: Result, predictions: pd.DataFrame, path: Path) -> Path:
    """A regression's predictions against the truth, and their differences (Bland-Altman), in the label's unit."""
    plt = pyplot()
    truth, predicted = predictions["y_true"].to_numpy(float), predictions["y_pred"].to_numpy(float)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
    low, high = min(truth.min(), predicted.min()), max(truth.max(), predicted.max())
    left.plot([low, high], [low, high], color=MUTED, linewidth=1)
    left.plot(truth, predicted, "o", markersize=4, alpha=0.6, color=MODEL, markeredgewidth=0)
    left.set_xlabel(f"measured ({result.unit})")
    left.set_ylabel(f"predicted ({result.unit})")
    left.set_aspect("equal", adjustable="datalim")
    middle, difference = (truth + predicted) / 2, predicted - truth
    bias, spread = difference.mean(), 1.96 * difference.std(ddof=1)
    right.plot(middle, difference, "o", markersize=4, alpha=0.6, color=MODEL, markeredgewidth=0)
    for height, style in ((bias, "-"), (bias - spread, "--"), (bias + spread, "--")):
        right.axhline(height, color=FLOOR, linestyle=style, linewidth=1.2)
        right.annotate(
            f"{height:.2f}",
            (1, height),
            xycoords=("axes fraction", "data"),
            xytext=(3, 0),
            textcoords="offset points",
            fontsize=8,
            va="center",
        )
    right.set_xlabel(f"mean of measured and predicted ({result.unit})")
    right.set_ylabel(f"predicted - measured ({result.unit})")
    figure.suptitle(
        f"{result.task}   {_label(result).replace(chr(10), ', ')}   n = {len(truth)}", fontsize=10, x=0.01, ha="left"
    )
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return save(figure, path)


def confusion(result: Result, predictions: pd.DataFrame, classes: tuple[str, ...], path: Path) -> Path:
    """How many of each true class were given each class; shade is the share of the true class."""
    plt = pyplot()
    present = [name for name in classes if name in set(predictions["y_true"]) | set(predictions["y_pred"])]
    counts = (
        pd.crosstab(predictions["y_true"], predictions["y_pred"])
        .reindex(index=present, columns=present, fill_value=0)
        .to_numpy()
    )
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    size = 1.6 + 0.7 * len(present)
    figure, axes = plt.subplots(figsize=(size + 1, size))
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(counts):
        axes.text(column, row, str(count), ha="center", va="center", color="white" if share[row, column] > 0.6 else INK)
    axes.set_xticks(range(len(present)), present)
    axes.set_yticks(range(len(present)), present)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    axes.set_title(f"{result.task}\n{_label(result)}\nn = {len(predictions)}", fontsize=9, loc="left")
    return save(figure, path)
