"""Score against the severity of each disturbance, with the floor."""

from matplotlib.figure import Figure

from cardiobench.report.plots.style import FLOOR, GRID, INK, MODEL, MUTED, subplots
from cardiobench.results.analysis_result import AnalysisResult

COLOURS = {"probe": MODEL, "native": "#7c3aed", "zero_shot": "#15803d"}
COLUMNS = 4


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """One panel a disturbance; one line for each way of answering, with its 95 % interval."""
    table = record.tables["scores"]
    first = table.iloc[0]
    changes = list(dict.fromkeys(table.loc[table["change"] != "none", "change"]))
    rows = -(-len(changes) // COLUMNS)
    figure, grid = subplots(
        rows, COLUMNS, figsize=(2.7 * COLUMNS, 2.5 * rows + 0.8), sharey=True, squeeze=False, layout="constrained"
    )
    panels = list(grid.flat)
    for axes, change in zip(panels, changes, strict=False):
        for by, part in table.groupby("by", sort=False):
            line = part[part["change"].isin(("none", change))]
            spread = [line["score"] - line["low"], line["high"] - line["score"]]
            axes.errorbar(
                line["severity"], line["score"], spread, fmt="-o", color=COLOURS[by], markersize=4, capsize=2, label=by
            )
        axes.axhline(first["floor"], color=FLOOR, linestyle="--", linewidth=1.2, label="best constant")
        axes.set_title(change.replace("_", " "), fontsize=9, color=INK, loc="left")
        axes.set_xlabel("severity", fontsize=8)
        axes.grid(axis="y", color=GRID, linewidth=0.8)
        axes.tick_params(labelsize=8, colors=MUTED, labelcolor=INK)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[len(changes) :]:
        axes.set_visible(False)
    unit = f" ({first['unit']})" if isinstance(first["unit"], str) and first["unit"] else ""
    figure.supylabel(f"{first['metric']}{unit}, {first['better']} is better", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8, frameon=False, loc="outside lower right", ncols=len(labels))
    figure.suptitle(f"{record.subject}   {record.models[0]['name']}", fontsize=10, color=INK, x=0.01, ha="left")
    return {"severity": figure}
