"""Plot recordings along the text axis against the measured values."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from cardiobench.report.plots.style import GRID, INK, MODEL, RASTERIZE_ABOVE, subplots
from cardiobench.results.analysis_result import AnalysisResult

NOTES = {"axis": "Brackets: 95 % interval over patients."}


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Draw embeddings along and across the text axis, projections against measurements, and maps if available."""
    return {"axis": _axis(record), **_maps(record)}


def _maps(record: AnalysisResult) -> dict[str, Figure]:
    """Draw the maps of prompts and recordings, coloured by number."""
    columns = {"texts": ("prompts", "number"), "recordings": ("recordings", "measured")}
    shown = {name: record.tables[name] for name in columns if "x" in record.tables[name]}
    if not shown:
        return {}
    target, unit = record.subject.partition("/")[2], record.options.get("unit", "")
    title = (record.subject, record.models[0]["name"], "UMAP, for the eye only")
    figure, panels = subplots(1, len(shown), height=2.8, squeeze=False, title=title)
    numbers = pd.concat([record.tables[name][column] for name, (_, column) in columns.items()])
    for axes, (name, table) in zip(panels[0], shown.items(), strict=True):
        what, column = columns[name]
        points = axes.scatter(
            table["x"], table["y"], c=table[column], s=14, cmap="viridis", vmin=numbers.min(), vmax=numbers.max(),
            linewidths=0, rasterized=len(table) > RASTERIZE_ABOVE,
        )  # fmt: skip
        axes.set(xticks=[], yticks=[], title=f"{len(table)} {what}")
        axes.spines[:].set(color=GRID, visible=True)
    figure.colorbar(points, ax=list(panels[0]), location="bottom", label=f"{target} ({unit})")
    return {"maps": figure}


def _axis(record: AnalysisResult) -> Figure:
    texts, recordings = record.tables["texts"], record.tables["recordings"]
    target, unit = record.subject.partition("/")[2], record.options.get("unit", "")
    title = (record.subject, record.models[0]["name"])
    figure, (top, below) = subplots(2, 1, height=5.8, title=title)
    numbers = pd.concat([texts["number"], recordings["measured"]])
    colours = {"cmap": "viridis", "vmin": numbers.min(), "vmax": numbers.max(), "linewidths": 0.5}
    # Centre each modality on its own mean, because texts and recordings lie in different parts of the space.
    for table, column, style in (
        (recordings, "measured", {"marker": "o", "s": 16, "edgecolors": "none", "label": "recordings"}),
        (texts, "number", {"marker": "D", "s": 22, "edgecolors": INK, "label": "prompts"}),
    ):
        shown = top.scatter(
            *(_standardize(table[name]) for name in ("along", "across")), c=table[column], **style, **colours
        )
    figure.colorbar(shown, ax=top, label=f"{target} ({unit})")
    top.set(xlabel="along the text axis (SD of each)", ylabel="across it")
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
    return figure


def _standardize(values: pd.Series) -> pd.Series:
    """Standardise values; return zeros for a constant array."""
    deviation = values.std(ddof=0)
    return (values - values.mean()) / deviation if deviation > 1e-12 else values * 0
