"""Predictions against the truth: agreement of measurements; ROC, precision-recall, calibration and confusion of classes."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from sklearn.calibration import calibration_curve
from sklearn.metrics import confusion_matrix, precision_recall_curve, roc_curve

from cardiobench.report.plots.figure import ReportFigure
from cardiobench.report.plots.style import (
    DASHES,
    FLOOR,
    LINES,
    MODEL,
    MUTED,
    RASTERIZE_ABOVE,
    heatmap,
    shorten,
    subplots,
)
from cardiobench.results.score_result import ScoreResult

MAX_MODELS = len(LINES)  # in one panel
MAX_POINTS = 80  # of a curve
Curve = tuple[np.ndarray, np.ndarray]


def agreement_figure(result: ScoreResult, frame: pd.DataFrame) -> ReportFigure:
    """Draw predicted against measured values, and Bland and Altman's differences against means, in the label's unit.

    Args:
        result: of the model.
        frame: its predictions: id, patient_id, y_true, y_pred.
    """
    measured, predicted = (frame[name].to_numpy(np.float64) for name in ("y_true", "y_pred"))
    means, differences = (measured + predicted) / 2, predicted - measured
    bias = float(differences.mean())
    spread = 1.96 * float(differences.std(ddof=1)) if len(differences) > 1 else 0.0
    unit = f"{result.task.partition('/')[2]} ({result.unit})"
    figure, (left, right) = subplots(1, 2, figsize=(7.6, 3.3))
    dots = {"markersize": 3.5, "alpha": 0.55, "color": MODEL, "markeredgewidth": 0}
    for axes, x, y in ((left, measured, predicted), (right, means, differences)):
        axes.plot(x, y, "o", rasterized=len(x) > RASTERIZE_ABOVE, **dots)
        axes.grid(True)
    left.axline((measured.mean(), measured.mean()), slope=1, color=MUTED, linewidth=1)
    left.set(xlabel=f"measured {unit}", ylabel=f"predicted {unit}", title="line: predicted = measured")
    left.set_aspect("equal", adjustable="datalim")
    for level, line in ((bias, "-"), (bias - spread, "--"), (bias + spread, "--")):
        right.axhline(level, color=FLOOR, linestyle=line, linewidth=1.2)
        right.annotate(f"{level:.1f}", (1, level), (4, 0), right.get_yaxis_transform(), "offset points", va="center")
    right.set(
        xlabel=f"mean of both {unit}", ylabel=f"predicted − measured {unit}", title="bias, 95 % limits of agreement"
    )
    caption = (
        f"{result.model['name']}, {result.label}: predicted against measured, and the difference against the mean "
        f"(Bland-Altman; bias {bias:.2f}, 95 % limits of agreement {bias - spread:.2f} to {bias + spread:.2f} {result.unit}), "
        f"n = {len(frame)} ({frame['patient_id'].nunique()} patients)."
    )
    return ReportFigure("agreement", caption, figure, {"agreement": frame[["id", "y_true", "y_pred"]]})


def classification_figure(predictions: Mapping[str, pd.DataFrame], best: str, task: str) -> ReportFigure:
    """Draw ROC, precision-recall and calibration curves of every model, and the confusion of the best one.

    Of several classes each is set against the others, and all are counted in one curve (micro average).

    Args:
        predictions: model -> y_true, y_pred and p_<class>; the first `MAX_MODELS` with probabilities are drawn.
        best: the model whose confusion is shown.
        task: name.
    """
    frame = predictions[best]
    classes = [name.removeprefix("p_") for name in frame.columns if name.startswith("p_")]
    classes = classes or sorted(set(frame["y_true"]) | set(frame["y_pred"]))
    with_probabilities = {
        name: one_against_rest(own, classes)
        for name, own in predictions.items()
        if all(f"p_{label}" in own for label in classes)
    }
    shown = dict(list(with_probabilities.items())[:MAX_MODELS])
    figure, panels = subplots(1, 4, figsize=(10.4, 3.1 + 0.09 * len(shown)))
    rows = []
    for axes, (name, curve) in zip(panels, CURVES.items(), strict=False):
        if name != "precision-recall":
            axes.axline((0, 0), slope=1, color=MUTED, linewidth=0.8, linestyle=":")
        for number, (model, (truth, probability)) in enumerate(shown.items()):
            x, y = _thin(*curve(truth, probability))
            style = {"color": LINES[number], "linestyle": DASHES[number % len(DASHES)], "linewidth": 1.5}
            axes.plot(
                x, y, marker="o" if name == "calibration" else "", markersize=3, label=shorten(model, 56), **style
            )
            rows.append(pd.DataFrame({"model": model, "curve": name, "x": x, "y": y}))
        _unit_square(axes, name)
    counts = confusion_matrix(frame["y_true"], frame["y_pred"], labels=classes)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    heatmap(panels[3], shares, [shorten(label, 12) for label in classes], [shorten(label, 12) for label in classes],
            texts=counts.astype(str), rotation=30)  # fmt: skip
    panels[3].set(xlabel="predicted", ylabel="true", title=shorten(f"confusion: {best}", 34))
    if shown:
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower left", ncols=2)
    more = len(with_probabilities) - len(shown)
    without = [name for name in predictions if name not in with_probabilities]
    caption = (
        f"ROC, precision-recall, calibration and confusion on {task}, n = {len(frame)}."
        + (" Each class against the others, as one curve." if len(classes) > 2 else "")
        + (f" {more} more models are not drawn." if more else "")
        + (f" Without probabilities: {', '.join(without)}." if without else "")
    )
    table = pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=["model", "curve", "x", "y"])
    return ReportFigure("curves", caption, figure, {"curves": table})


def one_against_rest(frame: pd.DataFrame, classes: Sequence[str]) -> Curve:
    """Return truth and probability of the positive class, (n,) each; of several classes, all of them in one row."""
    asked = classes[-1:] if len(classes) == 2 else classes
    truth = np.concatenate([(frame["y_true"] == label).to_numpy() for label in asked])
    return truth, np.concatenate([frame[f"p_{label}"].to_numpy(np.float64) for label in asked])


def _roc(truth: np.ndarray, probability: np.ndarray) -> Curve:
    return roc_curve(truth, probability)[:2]


def _precision_recall(truth: np.ndarray, probability: np.ndarray) -> Curve:
    precision, recall, _ = precision_recall_curve(truth, probability)
    return recall, precision


def _calibration(truth: np.ndarray, probability: np.ndarray) -> Curve:
    observed, predicted = calibration_curve(truth, np.clip(probability, 0, 1), n_bins=10, strategy="quantile")
    return predicted, observed


CURVES: dict[str, Callable[[np.ndarray, np.ndarray], Curve]] = {
    "ROC": _roc,
    "precision-recall": _precision_recall,
    "calibration": _calibration,
}
_AXES = {
    "ROC": ("false positive rate", "true positive rate"),
    "precision-recall": ("recall", "precision"),
    "calibration": ("predicted probability", "observed share"),
}


def _unit_square(axes: Axes, name: str) -> None:
    axes.set(title=name, xlabel=_AXES[name][0], ylabel=_AXES[name][1], xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.set(xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    axes.grid(True)


def _thin(x: np.ndarray, y: np.ndarray) -> Curve:
    keep = np.unique(np.linspace(0, len(x) - 1, min(MAX_POINTS, len(x))).round().astype(int))
    return x[keep], y[keep]
