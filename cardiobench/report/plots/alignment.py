"""The text axis in two dimensions, and recordings projected onto it against what was measured."""

import numpy as np
from matplotlib.figure import Figure

from cardiobench.report.plots.style import INK, MODEL, MUTED, subplots
from cardiobench.results.analysis_result import AnalysisResult


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Top: prompts and recordings along and across the axis, coloured by their number. Below: projection and measurement."""
    texts, recordings = record.tables["texts"], record.tables["recordings"]
    unit = record.options.get("unit", "")
    figure, (top, below) = subplots(2, 1, figsize=(6.2, 7.4), height_ratios=(1.0, 1.1))
    low = min(texts["number"].min(), recordings["measured"].min())
    high = max(texts["number"].max(), recordings["measured"].max())
    # Prompts and recordings lie in different parts of the space; each about its own middle shows both.
    style = {"cmap": "viridis", "vmin": low, "vmax": high}
    for table, column, marker, size, label in (
        (recordings, "measured", "o", 16, "recordings"),
        (texts, "number", "D", 22, "prompts"),
    ):
        along, across = (_spread(table[name]) for name in ("along", "across"))
        edge = INK if marker == "D" else "none"
        shown = top.scatter(
            along, across, c=table[column], marker=marker, s=size, edgecolors=edge, linewidths=0.5, label=label, **style
        )
    arrow = {"arrowstyle": "->", "color": INK}
    top.annotate("", xy=(0.98, 0.06), xytext=(0.02, 0.06), xycoords="axes fraction", arrowprops=arrow)
    top.text(0.5, 0.07, "text axis", ha="center", va="bottom", fontsize=8, color=INK, transform=top.transAxes)
    low, high = top.get_ylim()
    top.set_ylim(low - 0.18 * (high - low), high)
    top.set_xlabel("along the text axis (standard deviations of each)", fontsize=9)
    top.set_ylabel("across it", fontsize=9)
    figure.colorbar(shown, ax=top, label=f"{record.subject.partition('/')[2]} ({unit})")
    top.legend(fontsize=8, frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0)
    x, y = recordings["measured"].to_numpy(), recordings["along"].to_numpy()
    below.plot(x, y, "o", color=MODEL, markersize=4, alpha=0.6, markeredgewidth=0)
    if np.ptp(x) > 0:
        slope, start = np.polyfit(x, y, 1)
        ends = np.array([x.min(), x.max()])
        below.plot(ends, slope * ends + start, color=INK, linewidth=1.3)
    found = record.values["text_axis_pearson"]
    below.set_title(
        f"r = {found.value:.2f} [{found.low:.2f}, {found.high:.2f}], n = {found.n} ({found.n_patients} patients)",
        fontsize=9,
        color=INK,
        loc="left",
    )
    below.set_xlabel(f"measured {record.subject.partition('/')[2]} ({unit})", fontsize=9)
    below.set_ylabel("projection of the recording", fontsize=9)
    figure.suptitle(f"{record.subject}   {record.models[0]['name']}", fontsize=10, color=INK, x=0.02, ha="left")
    for axes in (top, below):
        axes.tick_params(colors=MUTED, labelcolor=INK)
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return {"axis": figure}


def _spread(values) -> np.ndarray:
    """Standard deviations from the mean; zeros where nothing varies."""
    deviation = values.std(ddof=0)
    return ((values - values.mean()) / deviation if deviation > 1e-12 else values * 0).to_numpy()
