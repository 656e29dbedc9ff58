"""Plot AUROC within sites, across sites, and of a prediction from the site alone."""

import numpy as np
from matplotlib.figure import Figure

from cardiobench.report.plots.style import FLOOR, GRID, MODEL, MUTED, heatmap, subplots
from cardiobench.results.analysis_result import AnalysisResult

ROWS = {
    "auroc_own": ("trained and tested at one site", MODEL),
    "auroc_carried": ("trained at one site, tested at another", MODEL),
    "auroc_mixed_within_places": ("trained on all sites, tested within each", MODEL),
    "auroc_mixed": ("trained and tested on all sites mixed", MODEL),
    "auroc_place_alone": ("the site alone, without a recording", FLOOR),
}
NOTES = {"places": "Brackets: 95 % interval over patients; the AUROCs have none."}


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Draw the AUROC for each choice of training and test sites, and for all pairs of sites if available."""
    table = record.tables["matrix"]
    sites = list(dict.fromkeys(table["train"]))
    identity, chance = record.values["identity_balanced_accuracy"], record.values["identity_chance"].value
    title = (
        record.subject,
        record.models[0]["name"],
        f"site recognised by a probe: {identity.value:.2f}",
        f"[{identity.low:.2f}, {identity.high:.2f}], chance {chance:.2f}",
    )
    heights = (2.4, 0.9 + 0.3 * len(sites))
    figure, (above, below) = subplots(2, 1, height=sum(heights), height_ratios=heights, title=title)
    height = -np.arange(len(ROWS))
    values = [record.values[key].value for key in ROWS]
    for y, value, (_, colour) in zip(height, values, ROWS.values(), strict=True):
        if np.isfinite(value):
            above.hlines(y, 0.5, value, color=GRID, linewidth=1)
            above.plot(value, y, "o", color=colour, markersize=7)
        text = f"{value:.2f}" if np.isfinite(value) else "undefined"
        above.annotate(text, (value if np.isfinite(value) else 0.5, y), (7, 0), textcoords="offset points", va="center")
    above.axvline(0.5, color=MUTED, linewidth=0.8)
    above.set_yticks(height, [text.replace(", ", ",\n") for text, _ in ROWS.values()])
    above.set(
        xlim=(min(0.4, np.nanmin([0.5, *values]) - 0.05), 1.08),
        ylim=(height[-1] - 0.6, 0.6),
        xlabel="AUROC of the label",
    )
    above.spines["left"].set_visible(False)
    above.tick_params(length=0)
    if sites:
        pairs = table.pivot_table(index="train", columns="test", values="auroc").reindex(index=sites, columns=sites)
        heatmap(below, pairs, sites, sites, low=0.5, rotation=30)
        below.set(xlabel="tested on", ylabel="trained on")
    else:
        below.axis("off")
    return {"places": figure}
