"""Score against the number of patients learned from, with a band over draws and test patients."""

from matplotlib.figure import Figure

from cardiobench.report.plots.style import FLOOR, GRID, INK, MODEL, MUTED, subplots
from cardiobench.results.analysis_result import AnalysisResult


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """The learning curve; single draws as dots, the probe on everybody at the right."""
    curve, draws = record.tables["curve"], record.tables["draws"]
    first = curve.iloc[0]
    figure, axes = subplots(figsize=(6, 3.8))
    few, everybody = curve[~curve["of_all"]], curve[curve["of_all"]].iloc[0]
    axes.fill_between(few["patients"], few["low"], few["high"], color=MODEL, alpha=0.15, linewidth=0)
    axes.plot(draws["patients"], draws["score"], "o", color=MODEL, alpha=0.3, markersize=3, markeredgewidth=0)
    axes.plot(few["patients"], few["score"], "-o", color=MODEL, markersize=5, label="mean of the draws, 95 % band")
    last = 1.8 * max(few["patients"].max() if len(few) else 1, 1)
    spread = [[everybody["score"] - everybody["low"]], [everybody["high"] - everybody["score"]]]
    axes.errorbar([last], [everybody["score"]], spread, fmt="s", color=INK, label="probe on all patients")
    axes.axhline(
        first["floor"], color=FLOOR, linestyle="--", linewidth=1.3, label=f"best constant {first['floor']:.3g}"
    )
    axes.set_xscale("log", base=2)
    ticks = [*few["patients"], last]
    axes.set_xticks(ticks, [*(str(size) for size in few["patients"]), f"all {everybody['patients']}"])
    axes.minorticks_off()
    axes.set_xlabel(f"{first['counted']} learned from")
    unit = f" ({first['unit']})" if isinstance(first["unit"], str) and first["unit"] else ""
    axes.set_ylabel(f"{first['metric']}{unit}, {first['better']} is better")
    model = record.models[0]["name"]
    axes.set_title(f"{record.subject}   {model}", fontsize=10, color=INK, loc="left")
    axes.legend(fontsize=8, frameon=False)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.tick_params(colors=MUTED, labelcolor=INK)
    axes.spines[["top", "right"]].set_visible(False)
    return {"curve": figure}
