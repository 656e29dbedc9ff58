"""The text axis in two dimensions, with recordings projected onto it against the measured values."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from cardiobench.report.plots.style import INK, MODEL, subplots
from cardiobench.results.analysis_result import AnalysisResult


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Draw prompts and recordings along and across the axis, and below the projection against the measurement."""
    texts, recordings = record.tables["texts"], record.tables["recordings"]
    target, unit = record.subject.partition("/")[2], record.options.get("unit", "")
    title = f"{record.subject}   {record.models[0]['name']}"
    figure, (top, below) = subplots(2, 1, figsize=(6.2, 7.4), height_ratios=(1.0, 1.1), title=title)
    numbers = pd.concat([texts["number"], recordings["measured"]])
    colours = {"cmap": "viridis", "vmin": numbers.min(), "vmax": numbers.max(), "linewidths": 0.5}
    # Prompts and recordings lie in different parts of the space; each about its own mean shows both.
    for table, column, style in (
        (recordings, "measured", {"marker": "o", "s": 16, "edgecolors": "none", "label": "recordings"}),
        (texts, "number", {"marker": "D", "s": 22, "edgecolors": INK, "label": "prompts"}),
    ):
        shown = top.scatter(
            *(_standardize(table[name]) for name in ("along", "across")), c=table[column], **style, **colours
        )
    figure.colorbar(shown, ax=top, label=f"{target} ({unit})")
    top.set(xlabel="along the text axis (standard deviations of each)", ylabel="across it")
    top.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0)
    x, y = recordings["measured"].to_numpy(), recordings["along"].to_numpy()
    below.plot(x, y, "o", color=MODEL, markersize=4, alpha=0.6, markeredgewidth=0)
    if np.ptp(x) > 0:
        ends = np.array([x.min(), x.max()])
        below.plot(ends, np.polyval(np.polyfit(x, y, 1), ends), color=INK, linewidth=1.3)
    r = record.values["text_axis_pearson"]
    below.set(
        title=f"r = {r.value:.2f} [{r.low:.2f}, {r.high:.2f}], n = {r.n} ({r.n_patients} patients)",
        xlabel=f"measured {target} ({unit})",
        ylabel="projection of the recording",
    )
    return {"axis": figure}


def _standardize(values: pd.Series) -> pd.Series:
    """Return standard deviations from the mean; zeros where nothing varies."""
    deviation = values.std(ddof=0)
    return (values - values.mean()) / deviation if deviation > 1e-12 else values * 0
