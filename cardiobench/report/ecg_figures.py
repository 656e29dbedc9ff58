"""Figure 1 of arXiv:2601.21830: how much of the top 50 the datasets share, model by model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cardiobench.report.ecg_tables import LABELS, MODELS
from cardiobench.report.plots.style import FLOOR, INK, MUTED, subplots
from cardiobench.results.analysis_result import AnalysisResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {"cd": "#0b6fa4", "af": "#7c3aed"}
PUBLISHED = {("PKUDigitalHealth/ECGFounder", "af"): 0.36}
"""(model, label) -> the share that the paper's text gives."""


def shared(records: Sequence[AnalysisResult], k: int = 50) -> pd.DataFrame:
    """The numbers behind the figure, a row a model and label that has an overlap.

    Args:
        records: of `representation`, of one model each.
        k: most important dimensions of each dataset.

    Returns:
        model, label, overlap with its 95 % interval low to high, shuffled (the same classifier on shuffled labels), chance,
        published (NaN where the paper's text gives none); in the paper's order.
    """
    rows = {}
    for record in records:
        if record.protocol != "representation" or record.subject not in LABELS or len(record.models) != 1:
            continue
        found = record.values.get(f"overlap_at_{k}")
        if found is not None and np.isfinite(found.value):
            place = record.models[0]["name"], record.subject
            floors = (getattr(record.values.get(f"{key}_at_{k}"), "value", np.nan) for key in ("shuffled", "chance"))
            rows[place] = (*place, found.value, found.low, found.high, *floors, PUBLISHED.get(place, np.nan))
    known = list(MODELS)
    order = sorted(rows, key=lambda p: (known.index(p[0]) if p[0] in MODELS else len(known), p[0], LABELS.index(p[1])))
    columns = ["model", "label", "overlap", "low", "high", "shuffled", "chance", "published"]
    return pd.DataFrame([rows[place] for place in order], columns=columns)


def figures(records: Sequence[AnalysisResult], k: int = 50) -> dict[str, "Figure"]:
    """The bars of all models that have an overlap; none where there is none."""
    found = shared(records, k)
    return {"ecg_figure_1": _bars(found, k)} if len(found) else {}


def _bars(found: pd.DataFrame, k: int) -> "Figure":
    """A bar a model and label with its interval; the floor of shuffled labels and chance as lines across it."""
    names = list(found["model"].unique())
    figure, axes = subplots(figsize=(2.6 + 1.3 * len(names), 3.8), layout="constrained")
    width = 0.8 / len(LABELS)
    for side, label in enumerate(LABELS):
        own = found[found["label"] == label]
        places = np.array([names.index(name) for name in own["model"]]) + (side - (len(LABELS) - 1) / 2) * width
        if own.empty:
            continue
        axes.bar(places, own["overlap"], width * 0.92, color=COLOURS[label], label=label.upper())
        axes.vlines(places, own["low"], own["high"], color=INK, linewidth=1.2)
        for key, style, colour in (("shuffled", "--", FLOOR), ("chance", ":", MUTED)):
            ends = places - width / 2, places + width / 2
            axes.hlines(own[key], *ends, color=colour, linestyle=style, linewidth=1.4)
        known = own["published"].notna().to_numpy()
        axes.plot(places[known], own["published"][known], "D", color="white", markeredgecolor=INK, markersize=5)
    axes.plot([], [], "--", color=FLOOR, label="same classifier, shuffled labels")
    axes.plot([], [], ":", color=MUTED, label="chance")
    if found["published"].notna().any():
        axes.plot([], [], "D", color="white", markeredgecolor=INK, markersize=5, label="published")
    axes.set_xticks(range(len(names)), [MODELS.get(name, name) for name in names], fontsize=8)
    axes.set_ylim(0, 1)
    axes.set_ylabel(f"shared top {k}, mean over pairs of datasets", fontsize=9)
    axes.legend(fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
