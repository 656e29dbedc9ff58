"""Reproduce Figure 1 of arXiv:2601.21830: overlap of the top 50 dimensions between datasets."""

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
    """Return the values of the figure, one row per model and label.

    Args:
        records: Records of `representation` for single models.
        k: Number of most important dimensions per dataset.

    Returns:
        Table with the columns model, label, overlap, 95 % interval (low, high), shuffled (same classifier on shuffled
        labels), chance and n_patients, in the order of the paper. Published values are not included, because the paper does not
        state its formula.
    """
    rows = {}
    for record in records:
        if record.protocol != "representation" or record.subject not in LABELS or not is_of_patients(record):
            continue
        overlap = record.values.get(f"overlap_at_{k}")
        if overlap is not None and np.isfinite(overlap.value):
            place = record.models[0]["name"], record.subject
            floors = (getattr(record.values.get(f"{key}_at_{k}"), "value", np.nan) for key in ("shuffled", "chance"))
            rows[place] = (*place, overlap.value, overlap.low, overlap.high, *floors, overlap.n_patients)
    known = list(MODELS)
    order = sorted(
        rows, key=lambda p: (known.index(p[0]) if p[0] in MODELS else len(known), p[0], list(LABELS).index(p[1]))
    )
    columns = ["model", "label", "overlap", "low", "high", "shuffled", "chance", "n_patients"]
    return pd.DataFrame([rows[place] for place in order], columns=columns)


def ecg_figure(overlap: pd.DataFrame, k: int = 50) -> "Figure":
    """Draw one bar per model and label with its interval, and lines for shuffled labels and chance.

    Args:
        overlap: Non-empty table from `shared_dimensions`.
        k: Number of most important dimensions per dataset.
    """
    names = list(overlap["model"].unique())
    # The legend has three columns with a total width of 6.2 inches.
    figure, axes = subplots(width=max(6.6, 2.6 + 1.3 * len(names)), height=3.8)
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
    # Reserve the width of four models, so that a single bar does not fill the figure.
    middle, half = (len(names) - 1) / 2, max(len(names), 4) / 2
    axes.set(xlim=(middle - half, middle + half), ylim=(0, 1), ylabel=f"shared top {k}, mean over pairs of datasets")
    figure.legend(loc="outside upper center", ncols=3)
    return figure
