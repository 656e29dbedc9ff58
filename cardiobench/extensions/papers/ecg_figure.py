"""Figure 1 of arXiv:2601.21830: how much of the top 50 the datasets share, model by model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cardiobench.extensions.papers.ecg_cells import is_of_patients
from cardiobench.extensions.papers.ecg_tables import LABELS, MODELS
from cardiobench.report.plots.style import FLOOR, INK, LINES, MUTED, subplots
from cardiobench.results.analysis_result import AnalysisResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = dict(zip(LABELS, (LINES[0], LINES[3], LINES[1], LINES[2]), strict=True))
FLOORS = {"shuffled": ("--", FLOOR, "same classifier, shuffled labels"), "chance": (":", MUTED, "chance")}


def shared_dimensions(records: Sequence[AnalysisResult], k: int = 50) -> pd.DataFrame:
    """Return the numbers behind the figure, one row per model and label that has an overlap.

    Args:
        records: Records of `representation`, of one model each.
        k: Most important dimensions of each dataset.

    Returns:
        model, label, overlap with its 95 % interval low to high, shuffled (the same classifier on shuffled labels), chance;
        in the paper's order. The paper does not state its formula, so its numbers do not stand beside these.
    """
    rows = {}
    for record in records:
        if record.protocol != "representation" or record.subject not in LABELS or not is_of_patients(record):
            continue
        overlap = record.values.get(f"overlap_at_{k}")
        if overlap is not None and np.isfinite(overlap.value):
            place = record.models[0]["name"], record.subject
            floors = (getattr(record.values.get(f"{key}_at_{k}"), "value", np.nan) for key in ("shuffled", "chance"))
            rows[place] = (*place, overlap.value, overlap.low, overlap.high, *floors)
    known = list(MODELS)
    order = sorted(
        rows, key=lambda p: (known.index(p[0]) if p[0] in MODELS else len(known), p[0], list(LABELS).index(p[1]))
    )
    columns = ["model", "label", "overlap", "low", "high", "shuffled", "chance"]
    return pd.DataFrame([rows[place] for place in order], columns=columns)


def ecg_figure(overlap: pd.DataFrame, k: int = 50) -> "Figure":
    """Draw one bar per model and label with its interval; the floor of shuffled labels and chance as lines across it.

    Args:
        overlap: Overlap as returned by `shared_dimensions`, not empty.
        k: Most important dimensions of each dataset.
    """
    names = list(overlap["model"].unique())
    figure, axes = subplots(
        figsize=(max(6.6, 2.6 + 1.3 * len(names)), 3.8)
    )  # Three columns of the legend are 6.2 wide.
    labels = [label for label in LABELS if label in set(overlap["label"])]
    width = 0.8 / len(labels)
    for number, label in enumerate(labels):
        part = overlap[overlap["label"] == label]
        x = np.array([names.index(name) for name in part["model"]], float) + (number - (len(labels) - 1) / 2) * width
        axes.bar(x, part["overlap"], width * 0.92, color=COLOURS[label], label=LABELS[label])
        axes.vlines(x, part["low"], part["high"], color=INK, linewidth=1.2)
        for key, (style, colour, _) in FLOORS.items():
            axes.hlines(part[key], x - width / 2, x + width / 2, color=colour, linestyle=style, linewidth=1.4)
    for style, colour, name in FLOORS.values():
        axes.plot([], [], style, color=colour, label=name)
    axes.set_xticks(range(len(names)), [MODELS.get(name, name) for name in names])
    # As wide as four models at least: a single one's bar would fill the figure.
    middle, half = (len(names) - 1) / 2, max(len(names), 4) / 2
    axes.set(xlim=(middle - half, middle + half), ylim=(0, 1), ylabel=f"shared top {k}, mean over pairs of datasets")
    figure.legend(loc="outside upper center", ncols=3)
    return figure
