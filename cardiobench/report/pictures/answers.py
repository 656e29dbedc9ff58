"""What models answered, against the truth: agreement of numbers; ROC, precision, calibration and confusion of classes."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from cardiobench.report.pictures.ink import (
    DASHES,
    FLOOR,
    INK,
    LINES,
    MANY,
    MODEL,
    MUTED,
    Picture,
    few_ticks,
    new_figure,
    short,
)
from cardiobench.report.result import Result
from cardiobench.report.tables import protocol_name

BINS = 10  # of the calibration curve, of equal count
MOST = len(LINES)  # models in one panel


def agreement(result: Result, frame: pd.DataFrame) -> Picture:
    """Predicted against measured, and their differences against their means (Bland and Altman), in the label's unit.

    Args:
        result: of the model.
        frame: its predictions: id, y_true, y_pred.
    """
    truth, answer = frame["y_true"].to_numpy(np.float64), frame["y_pred"].to_numpy(np.float64)
    middle, difference = (truth + answer) / 2, answer - truth
    bias, spread = float(difference.mean()), 1.96 * float(difference.std(ddof=1)) if len(difference) > 1 else 0.0
    figure, (left, right) = new_figure(7.6, 3.3, columns=2, wspace=0.9, right=0.65)
    dots = {"marker": "o", "linestyle": "", "markersize": 3.5, "alpha": 0.55, "color": MODEL, "markeredgewidth": 0}
    ends = [min(truth.min(), answer.min()), max(truth.max(), answer.max())]
    left.plot(ends, ends, color=MUTED, linewidth=1, label="predicted = measured")
    left.plot(truth, answer, rasterized=len(truth) > MANY, **dots)
    left.set_xlabel(f"measured {_unit(result)}")
    left.set_ylabel(f"predicted {_unit(result)}")
    left.legend(loc="upper left", handlelength=1.5)
    right.plot(middle, difference, rasterized=len(truth) > MANY, **dots)
    for height, line in ((bias, "-"), (bias - spread, "--"), (bias + spread, "--")):
        right.axhline(height, color=FLOOR, linestyle=line, linewidth=1.2)
        right.annotate(f"{height:.1f}", (1.02, height), xycoords=("axes fraction", "data"), va="center", fontsize=8)
    right.set_xlabel(f"mean of both {_unit(result)}")
    right.set_ylabel(f"predicted - measured {_unit(result)}")
    for axes in (left, right):
        axes.grid()
        axes.xaxis.set_major_locator(few_ticks())
        axes.yaxis.set_major_locator(few_ticks())
    caption = (
        f"{result.model['name']}, {protocol_name(result)}: predicted against measured, and the difference against the mean "
        f"(Bland-Altman; bias {bias:.2f}, 95 % limits of agreement {bias - spread:.2f} to {bias + spread:.2f} {result.unit}), "
        f"n = {len(truth)} ({frame['patient_id'].nunique()} patients)."
    )
    return Picture("agreement", caption, figure, frame[["id", "y_true", "y_pred"]])


def _unit(result: Result) -> str:
    return f"{result.task.partition('/')[2]} ({result.unit})"


def classification(answers: Mapping[str, pd.DataFrame], best: str, task: str) -> Picture:
    """ROC and precision-recall of every model, its calibration, and the confusion of the best one.

    Of several classes each is set against the others and counted as one curve (micro average).

    Args:
        answers: model -> predictions with y_true, y_pred and p_<class>; the first `MOST` with probabilities are drawn.
        best: the model whose confusion is shown.
        task: name.
    """
    frame = answers[best]
    classes = [c.removeprefix("p_") for c in frame.columns if c.startswith("p_")] or sorted(
        set(frame["y_true"]) | set(frame["y_pred"])
    )
    curves = {
        name: _one_against_rest(own, classes)
        for name, own in answers.items()
        if all(f"p_{label}" in own for label in classes)
    }
    shown = dict(list(curves.items())[:MOST])
    figure, panels = new_figure(9.6, 3.75, columns=4, left=0.6, wspace=0.68, bottom=1.25, right=0.12)
    rows = []
    for number, (name, (truth, share)) in enumerate(shown.items()):
        look = {"color": LINES[number], "linestyle": DASHES[number % len(DASHES)], "linewidth": 1.5}
        lines = (roc(truth, share), precision_recall(truth, share), calibration(truth, share))
        for axes, (x, y), kind in zip(panels, lines, ("roc", "precision_recall", "calibration"), strict=False):
            marker = "o" if kind == "calibration" else ""
            axes.plot(x, y, marker=marker, markersize=3, label=short(name, 40) if kind == "roc" else None, **look)
            rows += [{"model": name, "curve": kind, "x": a, "y": b} for a, b in zip(x, y, strict=True)]
    for axes, (x, y, title) in zip(panels, _AXES, strict=False):
        axes.set_title(title)
        axes.set_xlabel(x, fontsize=8)
        axes.set_ylabel(y, fontsize=8)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xticks=_TICKS, yticks=_TICKS)
        axes.grid()
        axes.tick_params(labelsize=8)
    for axes in (panels[0], panels[2]):
        axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, linestyle=":")
    if shown:
        figure.legend(loc="lower left", ncols=2, bbox_to_anchor=(0.03, 0.0), fontsize=8)
    _confusion(panels[3], frame, classes)
    panels[3].set_title(short(f"confusion: {best}", 26), fontsize=8)
    left_out = f" {len(curves) - MOST} more models are in the table only." if len(curves) > MOST else ""
    without = [name for name in answers if name not in curves]
    left_out += f" Without probabilities: {', '.join(without)}." if without else ""
    several = " Each class against the others, as one curve." if len(classes) > 2 else ""
    caption = f"ROC, precision-recall, calibration and confusion on {task}, n = {len(frame)}.{several}{left_out}"
    return Picture("answers", caption, figure, pd.DataFrame(rows, columns=["model", "curve", "x", "y"]))


_TICKS = (0.0, 0.5, 1.0)
_AXES = (
    ("false positive rate", "true positive rate", "ROC"),
    ("recall", "precision", "precision-recall"),
    ("predicted probability", "observed share", "calibration"),
)


def _one_against_rest(frame: pd.DataFrame, classes: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Truth and probability of the positive class; of several classes all of them in one row."""
    asked = classes[-1:] if len(classes) == 2 else classes
    truth = np.concatenate([(frame["y_true"] == label).to_numpy() for label in asked])
    return truth, np.concatenate([frame[f"p_{label}"].to_numpy(np.float64) for label in asked])


def roc(truth: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False and true positive rates, (points,) each; thinned to what a picture can show."""
    from sklearn.metrics import roc_curve

    if truth.all() or not truth.any():
        return np.empty(0), np.empty(0)
    x, y, _ = roc_curve(truth, share)
    return _thin(x, y)


def precision_recall(truth: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Recall and precision, (points,) each."""
    from sklearn.metrics import precision_recall_curve

    if not truth.any():
        return np.empty(0), np.empty(0)
    precision, recall, _ = precision_recall_curve(truth, share)
    return _thin(recall, precision)


def calibration(truth: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean probability and observed share in bins of equal count, (bins,) each."""
    from sklearn.calibration import calibration_curve

    observed, predicted = calibration_curve(truth, np.clip(share, 0, 1), n_bins=BINS, strategy="quantile")
    return predicted, observed


def _thin(x: np.ndarray, y: np.ndarray, most: int = 80) -> tuple[np.ndarray, np.ndarray]:
    keep = np.unique(np.linspace(0, len(x) - 1, min(most, len(x))).round().astype(int))
    return x[keep], y[keep]


def _confusion(axes, frame: pd.DataFrame, classes: Sequence[str]) -> None:
    counts = pd.crosstab(frame["y_true"], frame["y_pred"]).reindex(index=classes, columns=classes, fill_value=0)
    values = counts.to_numpy()
    share = values / np.maximum(values.sum(axis=1, keepdims=True), 1)
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1.15, aspect="auto")
    for (row, column), count in np.ndenumerate(values):
        axes.text(
            column,
            row,
            str(count),
            ha="center",
            va="center",
            fontsize=8,
            color="#ffffff" if share[row, column] > 0.6 else "#101418",
        )
    labels = [short(label, 12) for label in classes]
    axes.set_xticks(range(len(classes)), labels, fontsize=8)
    axes.set_yticks(range(len(classes)), labels, fontsize=8, rotation=90, va="center")
    axes.set_xlabel("predicted", fontsize=8)
    axes.set_ylabel("true", fontsize=8, color=INK)
    axes.spines[:].set_visible(False)
