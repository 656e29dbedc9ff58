"""What models answered, against the truth: agreement of numbers; ROC, precision, calibration and confusion of classes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cardiobench.report.plots.curves import calibration, precision_recall, roc
from cardiobench.report.plots.panel import Panel, around, key, words
from cardiobench.report.plots.style import DASHES, FLOOR, LINES, MANY, MODEL, MUTED, Picture, new_figure, shorten
from cardiobench.results.score_result import ScoreResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = len(LINES)  # models in one panel


def agreement(result: ScoreResult, frame: pd.DataFrame) -> Picture:
    """Predicted against measured, and their differences against their means (Bland and Altman), in the label's unit.

    Args:
        result: of the model.
        frame: its predictions: id, y_true, y_pred.
    """
    truth, answer = frame["y_true"].to_numpy(np.float64), frame["y_pred"].to_numpy(np.float64)
    middle, difference = (truth + answer) / 2, answer - truth
    bias, spread = float(difference.mean()), 1.96 * float(difference.std(ddof=1)) if len(difference) > 1 else 0.0
    levels = (bias, bias - spread, bias + spread)
    figure = new_figure(7.6, 3.3)
    both = around(truth, answer)
    left = Panel(figure, (0.75, 0.55, 2.6, 2.4), both, both)
    right = Panel(figure, (4.25, 0.55, 2.7, 2.4), around(middle), around(difference, levels))
    left.bottom_scale(f"measured {_unit(result)}")
    left.left_scale(f"predicted {_unit(result)}", room=0.5)
    right.bottom_scale(f"mean of both {_unit(result)}")
    right.left_scale(f"predicted - measured {_unit(result)}", room=0.5)
    equal = {"color": MUTED, "linewidth": 1}
    left.line(both, both, **equal)
    key(figure, [("predicted = measured", equal)], left.left, left.top + 0.14)
    dots = {"size": 3.5, "alpha": 0.55, "color": MODEL, "markeredgewidth": 0, "rasterized": len(truth) > MANY}
    left.dots(truth, answer, **dots)
    right.dots(middle, difference, **dots)
    for level, line in zip(levels, ("-", "--", "--"), strict=True):
        right.line(right.x, [level, level], color=FLOOR, linestyle=line, linewidth=1.2)
        words(figure, right.right + 0.06, float(right.up(level)), f"{level:.1f}", va="center")
    caption = (
        f"{result.model['name']}, {result.label}: predicted against measured, and the difference against the mean "
        f"(Bland-Altman; bias {bias:.2f}, 95 % limits of agreement {bias - spread:.2f} to {bias + spread:.2f} {result.unit}), "
        f"n = {len(truth)} ({frame['patient_id'].nunique()} patients)."
    )
    return Picture("agreement", caption, figure, frame[["id", "y_true", "y_pred"]])


def _unit(result: ScoreResult) -> str:
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
    figure = new_figure(9.6, 3.75)
    panels = [Panel(figure, (0.6 + 2.45 * place, 1.25, 1.7, 2.15), _UNIT, _UNIT) for place in range(3)]
    looks = [
        {"color": LINES[number], "linestyle": DASHES[number % len(DASHES)], "linewidth": 1.5}
        for number in range(len(shown))
    ]
    for panel, (kind, x, y, title) in zip(panels, _CURVES, strict=True):
        panel.title(title)
        panel.bottom_scale(x, _TICKS, size=8)
        panel.left_scale(y, _TICKS, size=8)
        if kind is not precision_recall:
            panel.line([0, 1], [0, 1], color=MUTED, linewidth=0.8, linestyle=":")
    rows = []
    for look, (name, (truth, share)) in zip(looks, shown.items(), strict=True):
        for panel, (kind, *_) in zip(panels, _CURVES, strict=True):
            x, y = _thin(*kind(truth, share))
            panel.line(x, y, marker="o" if kind is calibration else "", markersize=3, **look)
            rows.append(pd.DataFrame({"model": name, "curve": kind.__name__, "x": x, "y": y}))
    key(figure, [(shorten(name, 56), look) for name, look in zip(shown, looks, strict=True)], 0.2, 0.72, 2, 4.7)
    _confusion(figure, (7.95, 1.25, 1.55, 2.15), frame, classes)
    words(figure, 7.95, 3.47, shorten(f"confusion: {best}", 26))
    left_out = f" {len(curves) - MOST} more models are in the table only." if len(curves) > MOST else ""
    without = [name for name in answers if name not in curves]
    left_out += f" Without probabilities: {', '.join(without)}." if without else ""
    several = " Each class against the others, as one curve." if len(classes) > 2 else ""
    caption = f"ROC, precision-recall, calibration and confusion on {task}, n = {len(frame)}.{several}{left_out}"
    table = pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=["model", "curve", "x", "y"])
    return Picture("answers", caption, figure, table)


_UNIT, _TICKS = (-0.02, 1.02), (0.0, 0.5, 1.0)
_CURVES = (
    (roc, "false positive rate", "true positive rate", "ROC"),
    (precision_recall, "recall", "precision", "precision-recall"),
    (calibration, "predicted probability", "observed share", "calibration"),
)


def _one_against_rest(frame: pd.DataFrame, classes: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Truth and probability of the positive class; of several classes all of them in one row."""
    asked = classes[-1:] if len(classes) == 2 else classes
    truth = np.concatenate([(frame["y_true"] == label).to_numpy() for label in asked])
    return truth, np.concatenate([frame[f"p_{label}"].to_numpy(np.float64) for label in asked])


def _thin(x: np.ndarray, y: np.ndarray, most: int = 80) -> tuple[np.ndarray, np.ndarray]:
    keep = np.unique(np.linspace(0, len(x) - 1, min(most, len(x))).round().astype(int))
    return x[keep], y[keep]


def _confusion(
    figure: "Figure", box: tuple[float, float, float, float], frame: pd.DataFrame, classes: Sequence[str]
) -> None:
    """How many of each true class were given each class; the shade is the share of the true class."""
    from matplotlib import colormaps
    from matplotlib.collections import PolyCollection

    counts = pd.crosstab(frame["y_true"], frame["y_pred"]).reindex(index=classes, columns=classes, fill_value=0)
    values = counts.to_numpy()
    share = values / np.maximum(values.sum(axis=1, keepdims=True), 1)
    left, bottom, width, height = box
    wide, tall = width / len(classes), height / len(classes)
    corners = np.array(
        [(left + column * wide, bottom + height - row * tall) for row, column in np.ndindex(share.shape)]
    )
    square = np.array([(0, 0), (wide, 0), (wide, -tall), (0, -tall)])
    shades = colormaps["Blues"](share.ravel() / 1.15)
    cells = PolyCollection(corners[:, None] + square, facecolors=shades, transform=figure.dpi_scale_trans, linewidths=0)
    figure.add_artist(cells)
    for (x, y), count, part in zip(corners + square[2] / 2, values.ravel(), share.ravel(), strict=True):
        ink = "#ffffff" if part > 0.6 else "#101418"
        words(figure, x, y, str(count), ha="center", va="center", color=ink)
    size = 8 if len(classes) < 5 else 6
    for number, label in enumerate(classes):
        words(figure, left + (number + 0.5) * wide, bottom - 0.06, shorten(label, 12), size, ha="center", va="top")
        y = bottom + height - (number + 0.5) * tall
        words(figure, left - 0.06, y, shorten(label, 12), size, ha="center", va="bottom", rotation=90)
    words(figure, left + width / 2, bottom - 0.24, "predicted", ha="center", va="top")
    words(figure, left - 0.3, bottom + height / 2, "true", ha="center", va="center", rotation=90)
