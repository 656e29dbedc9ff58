"""Plot scores against the number of training patients, with intervals over draws and test patients."""

from matplotlib.figure import Figure

from cardiobench.report.plots.style import FLOOR_LINE, INK, MODEL, subplots
from cardiobench.report.plots.units import shown_scores
from cardiobench.results.analysis_result import AnalysisResult

NOTES = {"curve": "Bars: 95 % intervals over draws and test patients; small dots: single draws."}


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Draw the learning curve, with dots for single draws and the full probe at the right."""
    scored_by = record.tables["curve"].iloc[0]
    curve, label = shown_scores(record.tables["curve"], scored_by)
    draws, _ = shown_scores(record.tables["draws"], scored_by)
    first, samples, whole = curve.iloc[0], curve[~curve["of_all"]], curve[curve["of_all"]].iloc[0]
    figure, axes = subplots(height=3.6, title=(record.subject, record.models[0]["name"]))
    axes.plot(draws["patients"], draws["score"], "o", color=MODEL, alpha=0.3, markersize=3, markeredgewidth=0)
    axes.vlines(samples["patients"], samples["low"], samples["high"], color=MODEL, linewidth=1.5)
    axes.plot(samples["patients"], samples["score"], "-o", color=MODEL, markersize=5, label="mean of the draws")
    last = 1.8 * max(samples["patients"].max() if len(samples) else 1, 1)
    spread = [[whole["score"] - whole["low"]], [whole["high"] - whole["score"]]]
    axes.errorbar([last], [whole["score"]], spread, fmt="s", color=INK, label="probe on all patients")
    axes.axhline(first["floor"], label=f"floor {first['floor']:.2f}", **FLOOR_LINE)
    axes.set_xscale("log", base=2)
    axes.set_xticks([*samples["patients"], last], [*map(str, samples["patients"]), f"all {whole['patients']}"])
    axes.minorticks_off()
    axes.set(xlabel=f"{first['counted']} learned from", ylabel=label)
    figure.legend(loc="outside lower left")
    axes.grid(axis="y")
    return {"curve": figure}
