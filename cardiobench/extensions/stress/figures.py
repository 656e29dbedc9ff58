"""Plot scores against perturbation severity, with the floor."""

from matplotlib.figure import Figure

from cardiobench.report.plots.style import FLOOR_LINE, LINES, subplots
from cardiobench.report.plots.units import shown_scores
from cardiobench.results.analysis_result import AnalysisResult

COLOURS = {"probe": LINES[0], "native": LINES[3], "zero_shot": LINES[2]}
COLUMNS = 2
NOTES = {"severity": "Bars: 95 % intervals over test patients."}


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Draw one panel per perturbation, with one line and 95 % band per predictor."""
    table, label = shown_scores(record.tables["scores"], record.tables["scores"].iloc[0])
    first = table.iloc[0]
    changes = list(dict.fromkeys(table.loc[table["change"] != "none", "change"]))
    rows = -(-len(changes) // COLUMNS)
    title = (record.subject, record.models[0]["name"])
    figure, grid = subplots(rows, COLUMNS, height=1.8 * rows + 0.4, sharey=True, squeeze=False, title=title)
    for axes, change in zip(grid.flat, changes, strict=False):
        for protocol, part in table[table["change"].isin(("none", change))].groupby("by", sort=False):
            spread = [part["score"] - part["low"], part["high"] - part["score"]]
            style = {"fmt": "-o", "color": COLOURS[protocol], "markersize": 4, "capsize": 2}
            axes.errorbar(part["severity"], part["score"], spread, label=protocol, **style)
        axes.axhline(first["floor"], label="floor", **FLOOR_LINE)
        axes.set(title=change.replace("_", " "), xlabel="severity")
        axes.grid(axis="y")
    for axes in grid.flat[len(changes) :]:
        axes.set_visible(False)
    figure.supylabel(label, fontsize=9)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=3)
    return {"severity": figure}
