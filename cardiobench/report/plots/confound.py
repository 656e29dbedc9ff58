"""What the place of a record has to do with a label's score."""

import numpy as np
from matplotlib.figure import Figure

from cardiobench.report.plots.representation import matrix
from cardiobench.report.plots.style import FLOOR, GRID, INK, MODEL, MUTED, subplots
from cardiobench.results.analysis_result import AnalysisResult

ROWS = {
    "auroc_own": ("trained and tested in one place", MODEL),
    "auroc_carried": ("trained in one place, tested in another", MODEL),
    "auroc_mixed_within_places": ("trained on all, looked at inside each place", MODEL),
    "auroc_mixed": ("trained and tested on all places mixed", MODEL),
    "auroc_place_alone": ("the place alone, without a recording", FLOOR),
}


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Left: the label's AUROC by where the probe learned and was tested. Right: all pairs of places, where there are any."""
    table = record.tables["matrix"]
    places = list(dict.fromkeys(table["train"]))
    figure, panels = subplots(1, 2, figsize=(9.6, 3.6), width_ratios=(1.2, 1.0), layout="constrained")
    left, right = panels
    height = -np.arange(len(ROWS))
    for y, (key, (_, colour)) in zip(height, ROWS.items(), strict=True):
        value = record.values[key].value
        if np.isfinite(value):
            left.hlines(y, 0.5, value, color=GRID, linewidth=1)
            left.plot(value, y, "o", color=colour, markersize=7)
            left.annotate(f"{value:.2f}", (value, y), xytext=(7, -3), textcoords="offset points", fontsize=8)
        else:
            left.text(0.51, y, "undefined", fontsize=8, color=MUTED, va="center")
    left.axvline(0.5, color=MUTED, linewidth=0.8)
    left.set_yticks(height, [title for title, _ in ROWS.values()], fontsize=8)
    left.set_xlim(min(0.4, *(_finite(record, key) - 0.05 for key in ROWS)), 1.08)
    left.set_ylim(height[-1] - 0.6, 0.6)
    left.set_xlabel("AUROC of the label", fontsize=9)
    left.spines[["top", "right", "left"]].set_visible(False)
    left.tick_params(length=0)
    if places:
        matrix(right, table.pivot_table(index="train", columns="test", values="auroc"), places, places, 0.5, 1)
        right.set_xlabel("tested on", fontsize=9)
        right.set_ylabel("trained on", fontsize=9)
    else:
        right.axis("off")
    found, chance = record.values["identity_balanced_accuracy"], record.values["identity_chance"].value
    figure.suptitle(
        f"{record.subject}   {record.models[0]['name']}   place told by a probe: {found.value:.2f} "
        f"[{found.low:.2f}, {found.high:.2f}], chance {chance:.2f}",
        fontsize=10,
        color=INK,
        x=0.01,
        ha="left",
    )
    return {"places": figure}


def _finite(record: AnalysisResult, key: str) -> float:
    value = record.values[key].value
    return value if np.isfinite(value) else 0.5
