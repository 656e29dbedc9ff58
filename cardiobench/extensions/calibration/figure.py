"""Draw reliability and decision curves with their bands."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from cardiobench.extensions.calibration.answers import ModelAnswers
from cardiobench.report.plots.style import DASHES, LINES, MUTED, subplots

Curves = tuple[pd.DataFrame, pd.DataFrame | str, pd.DataFrame]
"""Binned reliability; smooth reliability or the reason for none; decision curve."""


def draw_curves(curves: Mapping[str, Curves], model: ModelAnswers, label: str) -> Figure:
    """Draw the answers as given with bands, and recalibrated ones as lines.

    Args:
        curves: Kind of answers -> its curves, the answers as given first.
        model: Answers on the test set, for the title.
        label: Class.
    """
    title = [f"{model.name}, {model.protocol}", f"n = {len(model.test.truth)}, {model.test.clusters.count} patients"]
    figure, (above, below) = subplots(1, 2, width=7.2, height=3.2, title=title)
    for number, (kind, (bins, band, benefit)) in enumerate(curves.items()):
        style = {"color": LINES[number], "linestyle": DASHES[number], "linewidth": 1.4}
        if not number:
            above.plot(bins["x"], bins["y"], "o", color=LINES[0], markersize=3, clip_on=False)
            below.fill_between(benefit["threshold"], benefit["low"], benefit["high"], color=LINES[0], alpha=0.18)
        if isinstance(band, pd.DataFrame):
            above.plot(band["probability"], band["share"], label=kind, **style)
            if not number:
                above.fill_between(band["probability"], band["low"], band["high"], color=LINES[0], alpha=0.18)
        below.plot(benefit["threshold"], benefit["net_benefit"], label=kind, **style)
    first = next(iter(curves.values()))[2]
    below.plot(first["threshold"], first["treat_all"], color=MUTED, linestyle=":", label="treat all")
    below.axhline(0, color=MUTED, linewidth=0.8, label="treat none")
    above.axline((0, 0), slope=1, color=MUTED, linewidth=0.8, linestyle=":")
    share = float(model.test.truth.mean())
    above.set(xlabel=f"probability of {label}", ylabel="observed share", xlim=(0, 1), ylim=(0, 1))
    top = 1.2 * max(share, 1 / len(model.test.truth))
    below.set(xlabel="threshold probability", ylabel="net benefit", xlim=(0, 1), ylim=(-0.25 * top, top))
    below.legend(fontsize=7)
    return figure
