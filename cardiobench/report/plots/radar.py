"""How well a model tells the views apart, a spoke a view (arXiv:2510.00520, Figure 5)."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from cardiobench.data.spec import VIEWS
from cardiobench.report.plots.panel import Panel, key
from cardiobench.report.plots.style import DASHES, GRID, LINES, MUTED, Picture, new_figure, shorten


def view_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """F1 of each view that occurs or was answered.

    Args:
        frame: y_true and y_pred, names of views.

    Returns:
        view, f1 (0 to 1), n (units of that view).
    """
    truth, answer = (frame[name].to_numpy(object) for name in ("y_true", "y_pred"))
    rows = []
    for view in VIEWS:
        true, told = truth == view, answer == view
        if true.any():
            rows.append({"view": view, "f1": 2 * (true & told).sum() / (true.sum() + told.sum()), "n": true.sum()})
    return pd.DataFrame(rows, columns=["view", "f1", "n"])


def radar(model: str, answers: Mapping[str, pd.DataFrame]) -> Picture | None:
    """A line a task and protocol; None where fewer than three views were asked.

    Args:
        model: name.
        answers: `<dataset>/view, <protocol>` -> predictions; others are passed over.
    """
    scores = {name: view_scores(frame) for name, frame in answers.items() if name.split(",")[0].endswith("/view")}
    asked = [view for view in VIEWS if any((table["view"] == view).any() for table in scores.values())]
    if len(asked) < 3:
        return None
    figure = new_figure(7.2, 3.6)
    panel = Panel(figure, (0.45, 0.3, 3.0, 3.0), (-1, 1), (-1, 1))
    # The first view points up; the others follow counter-clockwise.
    turn = np.pi / 2 + np.linspace(0, 2 * np.pi, len(asked), endpoint=False)
    spoke = dict(zip(asked, np.column_stack([np.cos(turn), np.sin(turn)]), strict=True))
    around = np.linspace(0, 2 * np.pi, 73)
    for level in (0.25, 0.5, 0.75, 1.0):
        panel.line(level * np.cos(around), level * np.sin(around), color=GRID, linewidth=0.7, zorder=0)
        panel.words(0.02, level + 0.01, f"{level:g}", size=7, color=MUTED, va="bottom")
    for view, (x, y) in spoke.items():
        panel.line([0, x], [0, y], color=GRID, linewidth=0.7, zorder=0)
        panel.words(1.12 * x, 1.12 * y, view, size=9, ha="center", va="center")
    shown = list(scores.items())[: len(LINES)]
    looks = [
        {"color": LINES[number], "linestyle": DASHES[number % len(DASHES)], "marker": "o", "markersize": 4}
        for number in range(len(shown))
    ]
    for look, (_, table) in zip(looks, shown, strict=True):
        found = dict(zip(table["view"], table["f1"], strict=True))
        points = np.array([found[view] * spoke[view] for view in asked if view in found])
        panel.line(*np.vstack([points, points[:1]]).T, **look)
    names = [(shorten(name, 46), look) for (name, _), look in zip(shown, looks, strict=True)]
    key(figure, names, 3.95, 1.8 + 0.085 * len(names))
    count = sum(int(table["n"].sum()) for table in list(scores.values())[:1])
    table = pd.concat([table.assign(task=name) for name, table in scores.items()], ignore_index=True)
    caption = f"F1 of each view, {shorten(model, 60)}; n = {count} recordings of {shorten(next(iter(scores)), 60)}."
    return Picture("views", caption, figure, table)
