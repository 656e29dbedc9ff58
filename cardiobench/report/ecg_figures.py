"""Figure 1 of arXiv:2601.21830: how much of the top 50 the datasets share, model by model."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from cardiobench.report.ecg_tables import LABELS, MODELS
from cardiobench.report.plots import FLOOR, INK, MUTED, pyplot
from cardiobench.report.record import Record

COLOURS = {"cd": "#0b6fa4", "af": "#7c3aed"}
PUBLISHED = {("PKUDigitalHealth/ECGFounder", "af"): 0.36}
"""(model, label) -> the share that the paper's text gives."""


def figures(records: Sequence[Record], k: int = 50) -> dict[str, Figure]:
    """The bars of all models that have an overlap; none where there is none.

    Args:
        records: of `representation`, of one model each.
        k: most important dimensions of each dataset.
    """
    found = {
        (record.models[0]["name"], record.subject): record
        for record in records
        if record.protocol == "representation"
        and record.subject in LABELS
        and len(record.models) == 1
        and np.isfinite(getattr(record.values.get(f"overlap_at_{k}"), "value", np.nan))
    }
    return {"ecg_figure_1": _shared(found, k)} if found else {}


def _shared(found: dict[tuple[str, str], Record], k: int) -> Figure:
    """A bar a model and label with its interval; the floor of shuffled labels and chance as lines across it."""
    names = list(dict.fromkeys(name for name, _ in found))
    names.sort(key=lambda name: (list(MODELS).index(name) if name in MODELS else len(MODELS), name))
    figure, axes = pyplot().subplots(figsize=(2.6 + 1.3 * len(names), 3.8), layout="constrained")
    width = 0.8 / len(LABELS)
    for side, label in enumerate(LABELS):
        places = [number for number, name in enumerate(names) if (name, label) in found]
        for place in places:
            record, x = found[names[place], label], place + (side - (len(LABELS) - 1) / 2) * width
            value = record.values[f"overlap_at_{k}"]
            axes.bar(
                x, value.value, width * 0.92, color=COLOURS[label], label=label.upper() if place == places[0] else None
            )
            axes.vlines(x, value.low, value.high, color=INK, linewidth=1.2)
            ends = x - width / 2, x + width / 2
            for key, style, colour in (("shuffled", "--", FLOOR), ("chance", ":", MUTED)):
                axes.hlines(record.values[f"{key}_at_{k}"].value, *ends, color=colour, linestyle=style, linewidth=1.4)
            if (names[place], label) in PUBLISHED:
                axes.plot(x, PUBLISHED[names[place], label], "D", color="white", markeredgecolor=INK, markersize=5)
    axes.plot([], [], "--", color=FLOOR, label="same classifier, shuffled labels")
    axes.plot([], [], ":", color=MUTED, label="chance")
    if any(pair in PUBLISHED for pair in found):
        axes.plot([], [], "D", color="white", markeredgecolor=INK, markersize=5, label="published")
    axes.set_xticks(range(len(names)), [MODELS.get(name, name) for name in names], fontsize=8)
    axes.set_ylim(0, 1)
    axes.set_ylabel(f"shared top {k}, mean over pairs of datasets", fontsize=9)
    axes.legend(fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
