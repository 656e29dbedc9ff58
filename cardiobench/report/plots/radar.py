"""Plot F1 by view as a radar chart (arXiv:2510.00520, Figure 5)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from sklearn.metrics import f1_score

from cardiobench.report.plots.figure import ReportFigure
from cardiobench.report.plots.style import DASHES, LINE_HEIGHT, LINES, WIDTH, shorten


def view_scores(frame: pd.DataFrame, views: Sequence[str]) -> pd.DataFrame:
    """Return the F1 of each view in the data.

    Args:
        frame: Predictions with the columns y_true and y_pred (view names).
        views: View names in the order of the table.

    Returns:
        Table with the columns view, f1 (0 to 1) and n (number of recordings).
    """
    counts = frame["y_true"].value_counts()
    views = [view for view in views if view in counts]
    f1 = f1_score(frame["y_true"], frame["y_pred"], labels=views, average=None, zero_division=0) if views else []
    return pd.DataFrame({"view": views, "f1": f1, "n": [counts[view] for view in views]})


def radar_figure(model: str, predictions: Mapping[str, pd.DataFrame], views: Sequence[str]) -> ReportFigure | None:
    """Draw one line per task and protocol, or return None for fewer than three views.

    Args:
        model: Name of the model.
        predictions: Mapping from `<dataset>/view, <protocol>` to predictions.
        views: View names in the order of the spokes; views without recordings are omitted.
    """
    scores = {name: view_scores(frame, views) for name, frame in predictions.items()}
    views = [view for view in views if any(view in set(table["view"]) for table in scores.values())]
    if len(views) < 3:
        return None
    figure = Figure(figsize=(WIDTH, 3.6 + LINE_HEIGHT * min(len(scores), len(LINES))), layout="constrained")
    axes = figure.add_subplot(projection="polar", theta_offset=np.pi / 2)  # Start with the first view at the top.
    angle = dict(zip(views, np.linspace(0, 2 * np.pi, len(views), endpoint=False), strict=True))
    for number, (name, table) in enumerate(list(scores.items())[: len(LINES)]):
        angles, f1 = [angle[view] for view in table["view"]], table["f1"].tolist()
        style: dict[str, Any] = {
            "color": LINES[number],
            "linestyle": DASHES[number % len(DASHES)],
            "marker": "o",
            "markersize": 4,
        }
        axes.plot([*angles, *angles[:1]], [*f1, *f1[:1]], label=shorten(name), **style)
    axes.set(xticks=list(angle.values()), xticklabels=views, yticks=(0.25, 0.5, 0.75, 1), ylim=(0, 1))
    axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    axes.spines["polar"].set_visible(False)
    figure.legend(loc="outside lower left")
    first = next(iter(scores))
    caption = (
        f"F1 of each view, {shorten(model, 60)}; n = {scores[first]['n'].sum()} recordings of {shorten(first, 60)}."
    )
    table = pd.concat([table.assign(task=name) for name, table in scores.items()], ignore_index=True)
    return ReportFigure("views", caption, figure, {"views": table})
