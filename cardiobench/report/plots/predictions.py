"""Plot predictions against truth for measurements and classes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from sklearn.metrics import confusion_matrix

from cardiobench.report.plots.curves import (
    THRESHOLDS,
    decision_curve,
    one_against_rest,
    operating_point,
    precision_recall,
    reliability,
    roc,
)
from cardiobench.report.plots.figure import ReportFigure
from cardiobench.report.plots.style import (
    DASHES,
    FLOOR,
    LINE_HEIGHT,
    LINES,
    MODEL,
    MUTED,
    PAPER,
    RASTERIZE_ABOVE,
    WIDTH,
    fit,
    fixed_grid,
    heatmap,
    shorten,
    text_width,
    tick_width,
)
from cardiobench.results.score_result import ScoreResult
from cardiobench.tasks.answers import MOST_OUTSIDE, OTHER

MAX_MODELS = len(LINES)  # Each model needs its own style of line.
CURVE, ABOVE = 1.4, 0.75  # Heights of a curve panel and the space above it in inches.
SHARE = PercentFormatter(1, symbol=" %")  # Shares are shown in percent, as in the tables.
POINTS = ["model", "curve", "x", "y", "share"]
"""Columns of the table of drawn points."""
_LABELS = {
    "ROC": ("1 − specificity", "sensitivity"),
    "precision-recall": ("recall", "precision"),
    "reliability": ("predicted probability", "observed share"),
    "decision curve": ("threshold probability", "net benefit"),
}


def agreement_figure(result: ScoreResult, frame: pd.DataFrame) -> ReportFigure:
    """Draw predicted against measured values and a Bland-Altman plot in the label's unit.

    Args:
        result: Result of the model.
        frame: Predictions with the columns id, patient_id, y_true and y_pred.
    """
    measured, predicted = (frame[name].to_numpy(np.float64) for name in ("y_true", "y_pred"))
    means, differences = (measured + predicted) / 2, predicted - measured
    bias = float(differences.mean())
    spread = 1.96 * float(differences.std(ddof=1)) if len(differences) > 1 else 0.0
    unit = f"{result.task.partition('/')[2]} ({result.unit})"
    figure = Figure(figsize=(WIDTH, 5.6))
    above, below = figure.subplots(2, 1)
    dots = {"markersize": 3.5, "alpha": 0.55, "color": MODEL, "markeredgewidth": 0}
    for axes, x, y in ((above, measured, predicted), (below, means, differences)):
        axes.plot(x, y, "o", rasterized=len(x) > RASTERIZE_ABOVE, **dots)
        axes.grid(True)
    above.axline((measured.mean(), measured.mean()), slope=1, color=MUTED, linewidth=1)
    above.set(xlabel=f"measured {unit}", ylabel=f"predicted {unit}", title="line: predicted = measured")
    above.set_aspect("equal", adjustable="datalim")
    for level, line in ((bias, "-"), (bias - spread, "--"), (bias + spread, "--")):
        below.axhline(level, color=FLOOR, linestyle=line, linewidth=1.2)
        below.annotate(f"{level:.1f}", (1, level), (4, 0), below.get_yaxis_transform(), "offset points", va="center")
    below.set(
        xlabel=f"mean of both {unit}", ylabel=f"predicted − measured {unit}", title="bias, 95 % limits of agreement"
    )
    above.apply_aspect()  # Fix the limits before tick labels are measured.
    grid = fixed_grid(
        figure,
        2,
        1,
        left=0.33 + tick_width(above, below),
        right=0.1 + text_width(f"{level:.1f}" for level in (bias, bias - spread, bias + spread)),
        bottom=0.5,
        top=0.3,
        above=0.8,
    )
    above.set_subplotspec(grid[0, 0])
    below.set_subplotspec(grid[1, 0])
    caption = (
        f"{result.model['name']}, {result.label}: predicted against measured, and the difference against the mean "
        f"(Bland-Altman; bias {bias:.2f}, 95 % limits of agreement {bias - spread:.2f} to {bias + spread:.2f} {result.unit}), "
        f"n = {len(frame)} ({frame['patient_id'].nunique()} patients)."
    )
    return ReportFigure("agreement", caption, figure, {"agreement": frame[["id", "y_true", "y_pred"]]})


def classification_figure(
    predictions: Mapping[str, pd.DataFrame], best: str, task: str, classes: Sequence[str]
) -> ReportFigure:
    """Draw ROC, precision-recall, calibration and decision curves of all models, and the confusion matrix of the best.

    For several classes, each against the rest, curves are averages over the classes, as the scores are, and there is
    no decision curve.

    Args:
        predictions: Mapping from model to predictions with y_true, y_pred and p_<class>; the first `MAX_MODELS` with
            probabilities are drawn.
        best: Name of the model in the confusion matrix.
        task: Name of the task.
        classes: Class names in task order; in binary tasks, the second is the positive class.
    """
    frame = predictions[best]
    binary = len(classes) == 2
    drawable = {name: own for name, own in predictions.items() if _has_curves(own, classes)}
    curves = _LABELS if binary else [name for name in _LABELS if name != "decision curve"]
    figure = Figure()
    panels = {name: figure.add_subplot(3, 2, place) for place, name in enumerate([*curves, "confusion"], start=1)}
    points = []
    for number, (model, own) in enumerate(list(drawable.items())[:MAX_MODELS]):
        style: dict[str, Any] = {"color": LINES[number], "linestyle": DASHES[number % len(DASHES)], "linewidth": 1.5}
        for name, drawn in curve_points(own, classes).items():
            points.append(drawn.assign(**{"share": np.nan, **drawn, "model": model, "curve": name}))
            if name == "operating point":
                look: dict[str, Any] = {"color": LINES[number], "markersize": 7, "markeredgecolor": PAPER}
                panels["ROC"].plot(drawn["x"], drawn["y"], "o", **look)
            else:
                marker = "o" if name == "reliability" else ""
                label = fit(model, WIDTH - 0.6)
                panels[name].plot(drawn["x"], drawn["y"], marker=marker, markersize=3, label=label, **style)
    for name in curves:
        _finish(panels[name], name)
    prevalence = ""
    if binary and drawable:
        share = float((frame["y_true"] == classes[1]).mean())
        _, treat_all = decision_curve(frame["y_true"].eq(classes[1]).to_numpy(), np.ones(len(frame)))
        panels["decision curve"].plot(THRESHOLDS, treat_all, color=MUTED, linewidth=0.8, linestyle=":")
        top = max(share, 1 / len(frame))
        panels["decision curve"].set_ylim(-0.1 * top, 1.1 * top)
        prevalence = (
            " Dots on the ROC: the operating point, sensitivity and specificity of the predicted classes. Decision curve: net "
            f"benefit at the test set's prevalence of {100 * share:.1f} % {classes[1]}; dotted: {classes[1]} predicted for all."
        )
    answers = [*classes, *([OTHER] if OTHER not in classes and (frame["y_pred"] == OTHER).any() else [])]
    counts = confusion_matrix(frame["y_true"], frame["y_pred"], labels=answers)[: len(classes)]
    labels = [shorten(label, 12) for label in answers]
    tilted = 0 if binary else 45
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    heatmap(panels["confusion"], shares, labels[: len(classes)], labels, texts=counts.astype(str), rotation=tilted)
    left = 0.35 + tick_width(panels["confusion"])
    # Start the title at the left end of the figure, because model names are long.
    panels["confusion"].set_title(fit(f"confusion: {best}", 3.2), x=(0.05 - left) / (WIDTH - left - 0.1), y=1)
    panels["confusion"].set(xlabel="predicted", ylabel="true")
    _place(figure, panels, size=max(1.4, 0.27 * len(classes)), below=0.55 + (text_width(labels) * 0.7 if tilted else 0))
    without = [name for name in predictions if name not in drawable]
    caption = (
        f"ROC, precision-recall, reliability and confusion on {task}, n = {len(frame)}.{prevalence}"
        + ("" if binary else " ROC and precision-recall: averages over the classes, each against the others.")
        + f" Reliability: {f'share of {classes[1]}' if binary else 'how often the most probable class is right'}, in bins of its probability."
        + (f" {len(drawable) - MAX_MODELS} more models are not drawn." if len(drawable) > MAX_MODELS else "")
        + (
            f" Without probabilities, or with many answers outside the classes: {', '.join(without)}."
            if without
            else ""
        )
    )
    confusion = pd.DataFrame(counts, pd.Index(classes, name="true"), answers).reset_index()
    table = pd.concat(points, ignore_index=True)[POINTS] if points else pd.DataFrame(columns=POINTS)
    return ReportFigure("curves", caption, figure, {"curves": table, "confusion": confusion})


def curve_points(frame: pd.DataFrame, classes: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Return the drawn points of each curve of one model.

    Args:
        frame: Predictions with the columns y_true, y_pred and p_<class>.
        classes: Class names in task order; in binary tasks, the second is the positive class.

    Returns:
        Mapping from curve to table with the columns x, y and, for the reliability, share.
    """
    truth, scores = one_against_rest(frame, classes)
    found = {"ROC": roc(truth, scores), "precision-recall": precision_recall(truth, scores)}
    points = {name: pd.DataFrame({"x": x, "y": y}) for name, (x, y) in found.items()}
    points["reliability"] = reliability(frame, classes)
    if len(classes) == 2:
        x, y = decision_curve(truth[:, 0], scores[:, 0])
        points["decision curve"] = pd.DataFrame({"x": x, "y": y})
        points["operating point"] = pd.DataFrame([operating_point(frame, classes[1])], columns=["x", "y"])
    return points


def _place(figure: Figure, panels: Mapping[str, Axes], *, size: float, below: float) -> None:
    """Arrange the legend, the curves in two columns, and the confusion matrix from top to bottom.

    Args:
        figure: Figure with all panels drawn.
        panels: Curves in order, followed by the confusion matrix.
        size: Height of the confusion matrix in inches.
        below: Space in inches for class names and axis label below the confusion matrix.
    """
    handles, names = panels["ROC"].get_legend_handles_labels()
    *curves, confusion = panels.values()
    rows, top = -(-len(curves) // 2), 0.3 + LINE_HEIGHT * len(names)
    matrix = below + size
    figure.set_size_inches(WIDTH, top + CURVE * rows + ABOVE * rows + matrix)
    left, right = 0.35 + tick_width(*curves[::2]), 0.1 + text_width(["100 %"]) / 2
    between = 0.4 + tick_width(*curves[1::2])
    margins = {"left": left, "right": right, "bottom": matrix + ABOVE, "top": top}
    grid = fixed_grid(figure, rows, 2, **margins, between=between, above=ABOVE)
    for number, axes in enumerate(curves):
        axes.set_subplotspec(grid[divmod(number, 2)])
    left = 0.35 + tick_width(confusion)
    margins = {"left": left, "right": 0.1, "bottom": below, "top": figure.get_figheight() - matrix}
    confusion.set_subplotspec(fixed_grid(figure, 1, 1, **margins)[0, 0])
    if names:
        figure.legend(handles, names, loc="upper left", bbox_to_anchor=(0, 1), borderaxespad=0.2)


def _has_curves(frame: pd.DataFrame, classes: Sequence[str]) -> bool:
    """Return whether numbers that need probabilities are defined."""
    outside = OTHER not in classes and (frame["y_pred"] == OTHER).mean() > MOST_OUTSIDE
    return all(f"p_{label}" in frame for label in classes) and not outside


def _finish(axes: Axes, name: str) -> None:
    """Set the title, labels, scales and diagonal of a curve panel."""
    axes.set_title(name, y=1)  # Without y, matplotlib measures the whole panel to place the title.
    axes.set(xlabel=_LABELS[name][0], ylabel=_LABELS[name][1], xlim=(-0.02, 1.02), xticks=(0, 0.5, 1))
    axes.grid(True)
    axes.xaxis.set_major_formatter(SHARE)
    if name != "decision curve":
        axes.set(ylim=(-0.02, 1.02), yticks=(0, 0.5, 1))
        axes.yaxis.set_major_formatter(SHARE)
    if name in ("ROC", "reliability"):
        axes.axline((0, 0), slope=1, color=MUTED, linewidth=0.8, linestyle=":")
