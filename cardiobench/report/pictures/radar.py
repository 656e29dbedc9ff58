"""How well a model tells the views apart, a spoke a view (arXiv:2510.00520, Figure 5)."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from cardiobench.data.spec import VIEWS
from cardiobench.report.pictures.ink import DASHES, LINES, MUTED, Picture, short


def view_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """F1 of each view that occurs or was answered.

    Args:
        frame: y_true and y_pred, names of views.

    Returns:
        view, f1 (0 to 1), n (units of that view).
    """
    rows = []
    for view in VIEWS:
        truth, answer = frame["y_true"] == view, frame["y_pred"] == view
        if truth.any():
            rows.append(
                {"view": view, "f1": 2 * (truth & answer).sum() / (truth.sum() + answer.sum()), "n": truth.sum()}
            )
    return pd.DataFrame(rows, columns=["view", "f1", "n"])


def radar(model: str, answers: Mapping[str, pd.DataFrame]) -> Picture | None:
    """A line a task and protocol; None where fewer than three views were asked.

    Args:
        model: name.
        answers: `<dataset>/view, <protocol>` -> predictions; others are passed over.
    """
    from matplotlib.figure import Figure

    scores = {name: view_scores(frame) for name, frame in answers.items() if name.split(",")[0].endswith("/view")}
    asked = [view for view in VIEWS if any((table["view"] == view).any() for table in scores.values())]
    if len(asked) < 3:
        return None
    figure = Figure(figsize=(7.2, 4.2))
    axes = figure.add_axes((0.02, 0.1, 0.52, 0.78), projection="polar")
    axes.set_theta_zero_location("N")
    angle = dict(zip(asked, np.linspace(0, 2 * np.pi, len(asked), endpoint=False), strict=True))
    for number, (name, table) in enumerate(list(scores.items())[: len(LINES)]):
        found = dict(zip(table["view"], table["f1"], strict=True))
        spokes = [view for view in asked if view in found]
        closed = [*spokes, spokes[0]]
        line = DASHES[number % len(DASHES)]
        axes.plot(
            [angle[view] for view in closed],
            [found[view] for view in closed],
            line,
            marker="o",
            markersize=4,
            color=LINES[number],
            label=short(name, 46),
        )
    axes.set_xticks(list(angle.values()), list(angle), fontsize=9)
    axes.set_ylim(0, 1)
    axes.set_yticks([0.25, 0.5, 0.75, 1], ["0.25", "0.5", "0.75", "1"], fontsize=7, color=MUTED)
    axes.legend(loc="center left", bbox_to_anchor=(1.12, 0.5), fontsize=8)
    count = sum(int(table["n"].sum()) for table in list(scores.values())[:1])
    table = pd.concat([table.assign(task=name) for name, table in scores.items()], ignore_index=True)
    caption = f"F1 of each view, {short(model, 60)}; n = {count} recordings of {short(next(iter(scores)), 60)}."
    return Picture("views", caption, figure, table)
